"""The page of `selfroute view` and the report, in a real browser: on a phone, on a screen, by keyboard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from selfroute_workbench.evaluation.pages.view import view
from view_parts import HOSTILE, a_row, an_evaluation_to_view, from_passages, some_rows, write_rows

pytestmark = pytest.mark.browser

SHOWN = "article:not([hidden])"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The addresses of pages: of rows, of an evaluation, and its report."""
    rows, evaluation = tmp_path_factory.mktemp("rows"), tmp_path_factory.mktemp("evaluation")
    write_rows(rows / "rows.jsonl", some_rows())
    an_evaluation_to_view().save(evaluation)
    for folder in (rows, evaluation):
        (folder / "view.html").write_text(view(folder), encoding="utf-8")
    found = {"rows": rows / "view.html", "evaluation": evaluation / "view.html", "report": evaluation / "report.html"}
    return {name: path.as_uri() for name, path in found.items()}


def choose(tab: Any, name: str, value: str) -> None:
    tab.select_option(f"select[name={name}]", value)
    tab.wait_for_timeout(300)  # filters wait until nobody types any more


def questions(tab: Any) -> list[str]:
    return [each.strip() for each in tab.locator(f"{SHOWN} h3").all_inner_texts()]


def overflows(tab: Any) -> list[str]:
    """What makes the page wider than the screen."""
    return tab.evaluate(  # type: ignore[no-any-return]
        """() => document.documentElement.scrollWidth <= innerWidth ? [] :
        [...document.querySelectorAll("body *")].filter((one) => one.getBoundingClientRect().right > innerWidth)
            .map((one) => one.outerHTML.slice(0, 80))"""
    )


@pytest.mark.parametrize("name", ["rows", "evaluation", "report"])
def test_no_page_is_wider_than_the_screen_with_everything_open(tab: Any, pages: dict[str, str], name: str) -> None:
    tab.goto(pages[name])
    assert overflows(tab) == []
    tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert overflows(tab) == []


@pytest.mark.parametrize("name", ["rows", "evaluation", "report"])
def test_text_from_outside_is_text(tab: Any, pages: dict[str, str], name: str) -> None:
    tab.goto(pages[name])
    tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert "<img src=x onerror=alert(1)>" in (tab.text_content("main") or "")
    assert tab.locator("article img").count() == 0
    tab.wait_for_timeout(100)  # an alert would fail the test


def test_filters_find_what_went_wrong(tab: Any, pages: dict[str, str]) -> None:
    tab.goto(pages["rows"])
    assert tab.inner_text("output") == "6 of 6 questions"
    choose(tab, "mark", "twice")
    assert questions(tab) == ["Why did they speak of tea?"]
    choose(tab, "mark", "")
    choose(tab, "route", "rag")
    assert questions(tab) == ["When did it begin?", "Who stopped it?"]
    choose(tab, "route", "")
    choose(tab, "order", "cost")
    assert questions(tab)[0] == "Why did they speak of tea?"
    choose(tab, "order", "asked")
    assert questions(tab)[0] == "Who chaired the meeting?"
    tab.fill("input[name=search]", "BUDGET")
    tab.wait_for_timeout(300)
    assert questions(tab) == ["Who stopped it?"]
    tab.fill("input[name=search]", "nowhere to be found")
    tab.wait_for_timeout(300)
    assert tab.locator(".nothing").is_visible()
    tab.goto(pages["evaluation"])
    choose(tab, "mark", "lost")
    assert questions(tab) == ["What is lost?"]


def test_the_page_is_read_by_keyboard(tab: Any, pages: dict[str, str]) -> None:
    def focused() -> str:
        return str(tab.evaluate("document.activeElement.querySelector('h3')?.textContent"))

    tab.goto(pages["rows"])
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.className") == "skip"
    tab.keyboard.press("Enter")
    assert tab.evaluate("location.hash") == "#questions"
    tab.keyboard.press("j")
    assert focused() == "Who chaired the meeting?"
    assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("j")
    assert focused() == "Why did they speak of tea?"
    opened = f"{SHOWN}:nth-of-type(3) > details"
    assert not tab.locator(opened).evaluate("(one) => one.open")
    tab.keyboard.press("Enter")
    assert tab.locator(opened).evaluate("(one) => one.open")
    tab.keyboard.press("ArrowUp")
    tab.keyboard.press("k")
    tab.keyboard.press("k")  # nothing comes before the first
    assert focused() == "Who chaired the meeting?"
    tab.keyboard.press("/")
    tab.keyboard.type("jk/")
    assert tab.input_value("input[name=search]") == "jk/"


def test_a_question_has_an_address(tab: Any, pages: dict[str, str]) -> None:
    tab.goto(f"{pages['rows']}#question-4")
    assert tab.locator("#question-4 > details").evaluate("(one) => one.open")
    assert "it would take 4,100 of 4,000 tokens" in tab.inner_text("#question-4")


def test_what_matters_of_a_question_is_seen(tab: Any, pages: dict[str, str]) -> None:
    tab.goto(pages["rows"])
    first = tab.locator("#question-1")
    assert first.locator("mark.refusal").inner_text() == "does not say who chaired"
    assert first.locator("mark:not(.refusal)").all_inner_texts() == ["Ms Okafor chaired it."]
    label = first.locator("svg.meter").first.get_attribute("aria-label")
    assert label == "9,102 tokens: rag 101, long context 9,001; the long context alone 9,000"
    parts = [
        each.bounding_box()["width"] for each in first.locator("svg.meter").first.locator("rect:not(.track)").all()
    ]
    assert 50 < parts[1] / parts[0] < 100
    assert not first.get_by_text("It began at nine.", exact=True).is_visible()
    first.get_by_text("1 passage").click()
    assert first.get_by_text("It began at nine.", exact=True).is_visible()


def test_the_report_begins_with_the_verdict_and_its_tiles_and_doubts_fold(tab: Any, pages: dict[str, str]) -> None:
    tab.goto(pages["report"])
    top = tab.locator("h1").bounding_box()["y"]
    assert top < tab.locator(".tiles").bounding_box()["y"] < 500
    assert not tab.locator("#sure .notes").is_visible()
    tab.locator("summary", has_text="How sure is this?").click()
    assert tab.locator("#sure .notes").is_visible()
    assert not tab.get_by_role("rowheader", name="model", exact=True).is_visible()
    tab.get_by_text("What was run").click()
    assert tab.get_by_role("rowheader", name="model", exact=True).is_visible()
    assert tab.get_by_role("rowheader", name="temperature").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["rows", "report"])
def test_text_can_be_told_from_its_background(tab: Any, pages: dict[str, str], name: str, scheme: str) -> None:
    tab.emulate_media(color_scheme=scheme)
    tab.goto(pages[name])
    tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    faint = tab.evaluate(
        """() => {
        const parse = (text) => text.match(/[\\d.]+/g).map(Number);
        const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
            .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
            .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
        const behind = (one) => {
            for (; one; one = one.parentElement) {
                const colour = parse(getComputedStyle(one).backgroundColor);
                if (colour.length === 3 || colour[3] > 0) return colour;
            }
            return [255, 255, 255];
        };
        return [...document.querySelectorAll("body *")].filter((one) =>
            [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()) && one.checkVisibility())
            .filter((one) => {
                const [a, b] = [light(parse(getComputedStyle(one).color)), light(behind(one))];
                return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5;
            }).map((one) => one.outerHTML.slice(0, 100));
    }"""
    )
    assert faint == []


def test_a_thousand_questions_are_filtered_at_once(tab: Any, tmp_path: Path) -> None:
    rows = [from_passages(f"Question {number}?") for number in range(9_999)]
    path = write_rows(tmp_path / "rows.jsonl", [*rows, a_row("The dear one?", answerable=False)])
    page = tmp_path / "view.html"
    page.write_text(view(path), encoding="utf-8")
    tab.goto(page.as_uri())
    assert "9,000 of 10,000 questions are left out" in tab.inner_text("#questions")
    choose(tab, "mark", "twice")
    assert questions(tab) == ["The dear one?"]
    assert HOSTILE not in tab.content()
