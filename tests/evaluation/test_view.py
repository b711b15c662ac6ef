"""The page of `selfroute view`: what it makes of an evaluation, and of rows as people write them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.load import dumpd
from llama_index.core.schema import NodeWithScore, TextNode

from look_parts import a_question
from selfroute import Ledger
from selfroute.errors import InputError
from selfroute_workbench.evaluation.pages.bars import bars_of
from selfroute_workbench.evaluation.pages.browsing import Asked, browsed
from selfroute_workbench.evaluation.pages.places import Shown
from selfroute_workbench.evaluation.pages.report import html
from selfroute_workbench.evaluation.pages.rows import read_rows
from selfroute_workbench.evaluation.pages.view import figures_of, view
from selfroute_workbench.evaluation.results import Evaluation
from view_parts import (
    HOSTILE,
    MINUTES,
    STOP,
    Page,
    a_row,
    an_evaluation_to_view,
    from_passages,
    some_rows,
    usage,
    write_rows,
)


def page_of(path: Path, *rows: dict[str, Any]) -> Page:
    return Page(view(write_rows(path / "rows.jsonl", rows)))


def test_rows_are_marked_by_how_they_ended(tmp_path: Path) -> None:
    page = page_of(tmp_path, *some_rows())
    assert page.marks == ["gained", "", "twice", "stopped", "gained", "failed"]
    assert "declined twice (1)" in page.texts["option"]
    assert "does not say who chaired" in page.texts["mark"]  # the refusal
    assert f"stop here, by Budget: {STOP['reason']}" in page.texts["p"]


def test_of_a_document_only_what_is_around_a_citation_is_on_the_page(tmp_path: Path) -> None:
    text = view(write_rows(tmp_path / "rows.jsonl", [a_row()]))
    assert "They spoke of tea. <mark>Ms Okafor chaired it.</mark> They spoke of rain." in text
    assert text.count("They spoke of") < 30 < MINUTES.count("They spoke of")
    uncited = view(write_rows(tmp_path / "rows.jsonl", [a_row(citations=None)]))
    assert "It began at nine. They spoke of tea." in uncited
    assert uncited.count("They spoke of") < 60


def test_text_from_outside_adds_no_element_and_no_attribute(tmp_path: Path) -> None:
    def shape(text: str) -> list[tuple[str, tuple[str, ...]]]:
        decision = {
            "declined": True,
            "signal": "phrase",
            "evidence": text,
            "ruling": {**STOP, "by": text, "reason": text},
        }
        row = a_row(text, id=text, answer=text, decision=decision, route=None, draft=f"draft {text}")
        row |= {"retrieved": [text], "citations": [{"text": text, "source": text}]}
        return page_of(tmp_path, row, {"question": text, "error": text}).shape()

    assert shape(HOSTILE) == shape("harmless")


def test_a_page_runs_its_own_script_only_and_asks_nobody(tmp_path: Path) -> None:
    for page in (page_of(tmp_path, *some_rows()), Page(html(an_evaluation_to_view()))):
        (policy,) = [each["content"] or "" for _, each in page.tags if "http-equiv" in each]
        assert policy.startswith("default-src 'none'; style-src 'sha256-")
        assert "unsafe" not in policy
        assert not [each for _, each in page.tags if {"src", "action", "style", "onclick"} & set(each)]
        links = {each["href"] or "" for _, each in page.tags if "href" in each}
        assert "#questions" in links
        assert all(link.startswith("#") for link in links)


SHAPES: dict[str, Any] = {
    "text": "It ended at noon.",
    "model_dump": Document("It ended at noon.", metadata={"source": "m"}).model_dump(),
    "dumpd": dumpd(Document("It ended at noon.", metadata={"source": "m"})),
    "to_dict": NodeWithScore(node=TextNode(text="It ended at noon."), score=0.5).to_dict(),
    "ask": {"source": "m", "start": 5, "text": "It ended at noon."},
}


@pytest.mark.parametrize("written", SHAPES.values(), ids=SHAPES)
def test_documents_are_read_as_frameworks_and_people_write_them(tmp_path: Path, written: Any) -> None:
    row = a_row(retrieved=[written], context=[written], citations=None)
    row = json.loads(json.dumps(row, default=str))
    ([asked], _) = read_rows(write_rows(tmp_path / "rows.jsonl", [row]))
    assert [each.text for each in asked.passages] == ["It ended at noon."]
    assert [each.before for each in asked.places.excerpts] == ["It ended at noon."]


def test_the_least_that_people_keep_of_a_result_is_shown(tmp_path: Path) -> None:
    row = {key: a_row()[key] for key in ("answer", "route", "answerable", "usage")}  # as examples/bulk.py
    page = page_of(tmp_path, {"question": "Who?", **row}, {"usage": row["usage"], "retrieved": ["an-id"]})
    assert [text for text in page.texts["h3"] if text.strip()] == ["Who?", "(the row has no question)"]
    assert page.marks == ["gained", ""]
    assert "Escalated" in page.texts["dt"]  # whether a draft declined is not known


def test_the_figures_are_those_of_a_ledger_that_reads_the_rows(tmp_path: Path) -> None:
    rows = some_rows()
    found = figures_of(read_rows(write_rows(tmp_path / "rows.jsonl", rows))[0])
    assert found == Ledger.read(rows).to_dict()
    page = page_of(tmp_path, *rows)
    assert "80%" in page.texts["dd"]
    assert "$0.0920" in page.texts["dd"]


def test_rows_whose_second_step_is_to_come_are_left_out_and_ids_may_come_twice(tmp_path: Path) -> None:
    rows = [a_row(id="a"), a_row(id="a", answer="other"), a_row(id="b", done=False)]
    found, _ = read_rows(write_rows(tmp_path / "rows.jsonl", rows))
    assert [each.question.id for each in found] == ["a", "a, line 2"]
    assert [each.answers[0].answer for each in found] == ["Ms Okafor", "other"]


def test_files_of_a_folder_that_hold_no_results_are_named(tmp_path: Path) -> None:
    write_rows(tmp_path / "answers.jsonl", [a_row()])
    write_rows(tmp_path / "requests-1.jsonl", [{"custom_id": "1", "body": {}}])
    (tmp_path / "notes.jsonl").write_text("not JSON\n")
    text = view(tmp_path)
    assert "Left out, since they hold no results: notes.jsonl, requests-1.jsonl." in text


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "there is no"),
        ("", "has no results: give the folder that `selfroute evaluate --out` wrote"),
        ('{"a": 1}\n', "is no result, which has the key usage, or question and error; its keys are a"),
        ('{"question": "Who?", "usage": {"rag": 7}}\n', "usage must be as a chain or an engine returns it"),
        ('{"usage": {"rag": null, "long_context_only": "x"}}\n', "rows.jsonl:1: decision and usage must be as a chain"),
        ('{"usage": {"rag": null, "cost": "0"}, "decision": "no"}\n', "rows.jsonl:1: decision and usage must be"),
        ('{"usage": {"rag": null, "total_tokens": 1' + "0" * 400 + "}}\n", "rows.jsonl:1: decision and usage must be"),
        ("nonsense\n", "is not JSON"),
        ("9" * 5000, "rows.jsonl:1 cannot be read"),
        ("[" * 100_000, "rows.jsonl:1 cannot be read"),
    ],
)
def test_what_holds_no_results_is_an_error_that_says_what_to_give(
    tmp_path: Path, content: str | None, said: str
) -> None:
    path = tmp_path / "rows.jsonl"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError, match=re.escape(said)):
        view(path)


def test_an_evaluation_is_shown_as_it_was_saved(tmp_path: Path) -> None:
    evaluation = an_evaluation_to_view()
    evaluation.save(tmp_path)
    text = view(tmp_path)
    page = Page(text)
    assert page.marks == ["", "lost", "gained disagree", "failed"]
    assert '<mark class="refusal">The text does not say</mark>' in text
    assert re.search(r"<mark>[^<]*It ended at noon\.</mark>", text)  # the excerpt, without the document
    assert browsed(Evaluation.load(tmp_path))[0].places == browsed(evaluation)[0].places
    assert 'href="report.html"' in text
    assert "figures are those of Self-Route" in unescape(text)
    assert "Not everything was asked" not in text
    shown = [one.main for one in browsed(evaluation) if one.main]
    assert [(one.decision["signal"], one.usage["long_context_only"]) for one in shown] == [
        ("answered", 100),
        ("sentinel", 100),
        ("sentinel", 100),
    ]


def test_both_pages_say_why_a_run_ended_early(tmp_path: Path) -> None:
    stopped = replace(an_evaluation_to_view(), stopped="the cap")
    stopped.save(tmp_path)
    for text in (view(tmp_path), html(stopped)):
        assert "<strong>Not everything was asked:</strong> the cap" in text


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *[("settings", None), ("looks", [{}]), ("passages", []), ("step", 7), ("answer", None), ("looks", [1])],
        *[("settings", {"strategies": ["best"]}), ("stopped", 7), ("cost", "x"), ("cost", "\ud800")],
        *[("questions.id", []), ("questions.metric", "best"), ("questions.document", 7), ("questions.answers", [0.5])],
        *[("excerpts.text", None), ("excerpts.start", -1)],
    ],
)
def test_an_evaluation_that_somebody_damaged_is_an_error_that_says_what_to_do(
    tmp_path: Path, key: str, value: Any
) -> None:
    an_evaluation_to_view().save(tmp_path)
    file = tmp_path / "results.json"
    saved = json.loads(file.read_text("utf-8"))
    part, _, field = key.rpartition(".")
    for damaged in [saved] if key in saved else saved[part or "looks"]:
        damaged[field] = value
    file.write_text(json.dumps(saved), "utf-8")
    with pytest.raises(InputError, match=r"results\.json is damaged, .*evaluate again") as told:
        view(tmp_path)
    assert "\n" not in str(told.value)


def test_an_escalation_is_lost_if_it_is_neither_right_nor_better_than_the_draft() -> None:
    def lost(routed: float, rag: float | None, used: dict[str, Any] | None = None) -> bool:
        declined = {"declined": used is None, "signal": "sentinel"}
        answers = [Shown("self_route", "x", "long_context", True, declined, used or usage(10, 100), None, score=routed)]
        answers += [] if rag is None else [Shown("rag", "", "rag", False, declined, usage(10), None, score=rag)]
        return Asked(a_question(), answers).lost

    assert lost(0.0, 0.0)
    assert lost(0.3, 0.4)
    assert lost(0.0, None)
    assert not lost(0.4, 0.3)
    assert not lost(1.0, 1.0)  # a question without an answer, declined twice
    assert not lost(0.0, 0.0, usage(None, 100))  # it began with the documents


def test_of_many_questions_those_worth_a_look_are_kept_and_the_others_counted(tmp_path: Path) -> None:
    rows = [from_passages(f"Easy {number}?") for number in range(30)]
    rows[17] = some_rows()[2]
    rows[23] = a_row("Dear?")
    text = view(write_rows(tmp_path / "rows.jsonl", rows), most=3)
    page = Page(text)
    assert "Why did they speak of tea?" in page.texts["h3"]
    assert "Dear?" in page.texts["h3"]
    assert len(page.marks) == 3
    assert "27 of 30 questions are left out" in " ".join(text.split())
    assert "30" in page.texts["dd"]


def test_a_long_text_loses_its_middle(tmp_path: Path) -> None:
    text = view(
        write_rows(tmp_path / "rows.jsonl", [a_row(answer=f"Begin {'x' * 500_000} End", retrieved=["y" * 500_000])])
    )
    assert len(text) < 60_000
    assert re.search(r"Begin x+ … \[497,\d{3} characters left out\] … x+ End", text)


def test_settings_without_a_value_are_left_out_and_doubts_fold() -> None:
    text = html(an_evaluation_to_view())
    assert "temperature" not in text
    assert "null" not in Page(text).texts["td"]
    order = ["<h1>", 'class="tiles"', "How sure is this?</summary>", "What was run", 'id="tables"', 'id="questions"']
    assert sorted(order, key=text.index) == order
    assert html(Evaluation([], []))


def test_bars_share_a_scale_and_say_what_the_long_context_alone_takes() -> None:
    alone = {"long_context_only": 9000, "cost_long_context_only": "0.018"}
    routed, draft = usage(1998, 6999, cost="0.009", **alone), usage(899, cost="0.0018", **alone)  # type: ignore[arg-type]
    tokens, money = bars_of(routed, [routed, draft])
    assert tokens.parts == [("rag", 0.0, 22.21), ("long_context", 22.21, 77.78)]
    assert tokens.label == "8,999 tokens: rag 1,999, long context 7,000; the long context alone 9,000"
    assert (money.parts, money.whole) == ([("cost", 0.0, 50.0)], 100.0)
    assert [bar.whole for bar in bars_of(draft, [routed, draft])] == [100.0, 100.0]
