"""The laws: the report says what to do, its words and code say the same as its figures, and no more than it knows."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from calibrating_parts import evaluated, made_up
from evaluation_parts import a_result, an_evaluation, results_of, usage
from selfroute.evaluation.calibrating.evidence import Evidence
from selfroute.evaluation.calibrating.recommendation import recommend
from selfroute.evaluation.calibrating.rows import Row
from selfroute.evaluation.reporting.advice import advise
from selfroute.evaluation.reporting.plots import plots
from selfroute.evaluation.reporting.report import html
from selfroute.evaluation.reporting.tables import tables
from selfroute.evaluation.results import Evaluation
from selfroute.evaluation.table import Table

RICH = made_up(120, 20)
ADVISED = ("strategies", "break_even", "routes", "frontier")


def priced(rows: list[Row], rate: float = 1e-6) -> list[Row]:
    """The same questions, at a price for each token."""

    def at_a_price(row: Row) -> dict[str, Any]:
        steps = ("rag", "sections", "graded", "graded_sections", "long_context")
        looks = {step: look for step in steps if (look := getattr(row, step))}
        return {step: replace(look, dollars=rate * look.tokens) for step, look in looks.items()}

    return [replace(row, **at_a_price(row)) for row in rows]


def table(done: Evaluation, name: str) -> Table:
    return next(each for each in tables(done) if each.name == name)


def column(found: Table, name: str) -> list[Any]:
    place = found.columns.index(name)
    return [row[place] for row in found.rows]


def test_page_terminal_and_files_say_the_same_in_words_and_in_code(tmp_path: Path) -> None:
    done = evaluated(priced(RICH))
    advice = done.recommendation()
    assert advice.code == 'answerability="graded", doubt_below=50, stop_below=20, sections=4000,'
    assert advice.words[0].startswith("Take graded answerability with sections: ")
    assert advice.code in str(advice)
    assert advice.code in str(done)
    assert " ".join(str(done).split()).startswith(advice.words[0])
    done.save(tmp_path)
    page = unescape((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert f"<code>{advice.code}</code></pre>" in page
    assert page.index(advice.words[0]) < page.index(done.summary()[0])
    saved = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["recommendation"]
    assert (saved["code"], saved["words"], saved["strategy"]) == (advice.code, list(advice.words), "graded_sections")
    assert saved["figures"]["rag"].keys() >= {"quality", "low", "high", "token_share", "dollars"}
    assert (tmp_path / "plots" / "frontier.png").exists()
    for name in ADVISED:
        with (tmp_path / "tables" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            assert len(list(csv.reader(file))) == 1 + len(table(done, name).rows)


def test_figures_are_those_of_the_rows_and_every_one_has_its_price() -> None:
    rows = priced(RICH)
    done, found = evaluated(rows), recommend(Evidence(rows))
    shown = table(done, "strategies")
    assert column(shown, "strategy") == list(found.figures)
    assert column(shown, "quality") == [pytest.approx(100 * each.quality) for each in found.figures.values()]
    assert column(shown, "")[column(shown, "strategy").index(found.strategy)] == "recommended"
    for name in ("strategies", "frontier"):
        assert None not in column(table(done, name), "dollars a question")
        assert None not in column(table(done, name), "token %")
        assert "rag" in column(table(done, name), "strategy")
    assert any("dollars" in note for note in table(done, "frontier").notes)
    assert "$" in done.recommendation().words[0]


def test_the_frontier_has_every_bound_and_one_recommended_point() -> None:
    done = evaluated(RICH)
    found = table(done, "frontier")
    assert column(found, "token %") == sorted(column(found, "token %"))
    graded = [row for row in found.rows if row[0] == "graded"]
    assert len({row[2:4] for row in graded}) == len(graded) > 20
    assert {row[4] for row in found.rows} == {"", "4,000"}
    assert column(found, "").count("recommended") == 1
    assert plots(done)["frontier"].startswith(b"\x89PNG")


def test_every_k_of_a_sweep_is_on_the_frontier_and_the_advice_is_for_the_first() -> None:
    done = evaluated(RICH, k=[5, 9])
    done = replace(
        done,
        settings={"k": [5, 9]},
        looks=[*done.looks, *(replace(each, k=9) for each in done.looks if each.k == 5)],
        results=[*done.results, *(replace(each, k=9) for each in done.results if each.k == 5)],
    )
    found = table(done, "frontier")
    by_k = [[row[0] for row in found.rows if row[1] == k] for k in (5, 9)]
    assert sorted(by_k[0]) == sorted(by_k[1])
    assert column(found, "strategy").count("long_context") == 1
    assert "This is for k=5; the frontier has every k." in done.recommendation().words
    assert [row[1] for row in found.rows if row[-1] == "recommended"] == [5]


def test_the_break_even_share_stands_beside_that_of_the_questions() -> None:
    done = evaluated(made_up(200, 20, invents=0.5, graded=False))
    found = recommend(made_up(200, 20, invents=0.5, graded=False)).break_even
    (_, share, low, high), (_, own, *_) = table(done, "break_even").rows
    assert (share, own) == (pytest.approx(100 * (found.share or 0)), pytest.approx(100 * (found.own or 0)))
    assert isinstance(low, float)
    assert isinstance(high, float)
    assert low <= 100 * (found.share or 0) <= high
    assert any(f"; here {own:.0f} % are" in sentence for sentence in done.recommendation().words)


def test_the_route_matrix_counts_every_question_once_for_each_strategy() -> None:
    found = table(evaluated(RICH), "routes")
    for strategy in ("self_route", "graded_sections"):
        counted = [row[2] + row[3] for row in found.rows if row[0] == strategy]  # type: ignore[operator]
        assert sum(counted) == len(RICH)
    escalated = {row[0]: row[2] for row in found.rows if row[1] == "no"}
    assert escalated["self_route"] == sum(row.answerable is False for row in RICH)
    assert escalated["graded_sections"] == 0


@pytest.mark.parametrize(
    ("done", "said"),
    [
        (an_evaluation(results_of({"rag": [0.5, 1]})), "long_context was not run"),
        (an_evaluation(results_of({"long_context": [0.5, 1]})), "rag was not run"),
        (replace(evaluated(RICH), settings={"language_model": False}), "is not a language model"),
        (evaluated(made_up(60, 20, graded=False)), "Graded answerability was not"),
        (evaluated(made_up(60, 20, unanswerable=0)), "needs questions of both kinds; here 0 % are unanswerable"),
        (evaluated(made_up(60, 20), judged=False), "F1"),
        (evaluated(made_up(60, 20)), "input tokens decide which strategy is cheaper"),
        (evaluated(made_up(60, 1)), "On this document, "),
        (evaluated(made_up(60, 9)), "On these documents, "),
        (evaluated(made_up(60, 9)), "says nothing about other documents"),
        (evaluated(made_up(12, 12)), "too few to tell strategies apart"),
    ],
    ids=[
        "no reader",
        "no rag",
        "no model",
        "not graded",
        "all answered",
        "no judge",
        "no price",
        "1",
        "9",
        "9 s",
        "12",
    ],
)
def test_what_cannot_be_said_is_said_in_words(done: Evaluation, said: str) -> None:
    words = "\n".join(done.recommendation().words)
    assert said in words
    assert said in unescape(html(done, tables_=[], plots_={}))
    if words.startswith("No recommendation"):
        assert done.recommendation().code is None
        assert not {each.name for each in tables(done)} & set(ADVISED)


def test_without_questions_there_is_nothing_to_say() -> None:
    assert advise(Evaluation([], [])).lines == []


def test_only_questions_that_are_compared_count() -> None:
    done = evaluated(RICH)
    first = done.questions[0].key
    partly = replace(done, results=[each for each in done.results if (each.key, each.strategy) != (first, "rag")])
    found = partly.recommendation().found
    assert found
    assert found.counts.questions == len(RICH) - 1


# --- the rules for declines --------------------------------------------------------------------------------------

NO_ANSWER = "The report does not mention the owner."
DENIES_LATE = "Kew is a garden. The report does not mention its owner."


def replies(draft: str, signal: str, *, judged: float | None = None, read: float = 1.0) -> Evaluation:
    """Three questions with the same draft; their whole documents are ten times as long."""
    results = []
    by: dict[str, Any] = {} if judged is None else {"judged_by": "model"}
    for number in range(3):
        declined = signal != "answered"
        given = {"id": str(number), "answer": draft, "draft": draft, "signal": signal, "answerable": not declined}
        score = 0.0 if declined else 0.5
        results.append(a_result("rag", score, **given, usage=usage(10), judged=judged, **by))
        judged_read = None if judged is None else read
        whole = {"id": str(number), "answer": "Mr Kew.", "usage": usage(None, 100), "judged": judged_read}
        results.append(a_result("long_context", read, **whole, **by))
    return an_evaluation(results)


@pytest.mark.parametrize(
    ("draft", "signal", "escalated"),
    [
        ("unanswerable", "sentinel", (100, 100, 100)),
        (NO_ANSWER, "phrase", (0, 100, 100)),
        (DENIES_LATE, "answered", (0, 0, 100)),
        ("Mr Kew owns it.", "answered", (0, 0, 0)),
        ("", "empty", (100, 100, 100)),
    ],
)
def test_each_rule_escalates_what_it_takes_for_a_decline(draft: str, signal: str, escalated: tuple[int, ...]) -> None:
    found = table(replies(draft, signal), "decline_rules")
    assert tuple(column(found, "first step declined %")) == escalated
    assert column(found, "token %") == [pytest.approx(110 if each else 10) for each in escalated]
    moved = len(set(escalated)) > 1
    assert ("hardly matter" in found.notes[0]) is not moved


def test_a_reply_that_another_rule_calls_an_answer_is_scored_as_it_stands() -> None:
    words, own, anywhere = table(replies(NO_ANSWER, "phrase"), "decline_rules").rows
    assert own[2] == anywhere[2] == pytest.approx(100)
    assert words[2] == pytest.approx(0)  # by F1, its words are not those of the reference
    words, own, _ = table(replies(NO_ANSWER, "phrase", judged=0.0), "decline_rules").rows
    assert (words[2], own[2]) == (pytest.approx(0), pytest.approx(100))
    assert (
        "by the refusal word only, Self-Route would have 100.0 points less"
        in table(replies(NO_ANSWER, "phrase"), "decline_rules").notes[0]
    )


def test_the_summary_says_if_the_rules_matter() -> None:
    moved = "The rules for declines matter here: by the refusal word only, Self-Route would have 100.0 points less."
    found = [each for each in replies(NO_ANSWER, "phrase").summary() if "rules for declines" in each]
    assert found == [f"{moved} Look at the drafts that declined before you trust the figures."]
    assert not [each for each in replies("Mr Kew owns it.", "answered").summary() if "rules for declines" in each]


def test_a_rule_that_changes_what_is_said_of_the_long_context_matters() -> None:
    results = []
    for number in range(40):
        draft = NO_ANSWER if number < 20 else "Mr Kew."
        declined = number < 20
        given = {"id": str(number), "answer": draft, "draft": draft, "answerable": not declined}
        signal = "phrase" if declined else "answered"
        results.append(a_result("rag", 0.0 if declined else 1.0, **given, signal=signal, usage=usage(10)))
        results.append(a_result("long_context", 1.0, id=str(number), answer="Mr Kew.", usage=usage(None, 100)))
    (found,) = (each for each in an_evaluation(results).summary() if "rules for declines" in each)
    assert "Compared with the long context: worse, instead of no difference shown." in found


def test_the_summary_says_how_many_documents_were_cut() -> None:
    results = [
        *results_of({"rag": [1, 0, 1]}),
        *(replace(each, cut=each.id == "1") for each in results_of({"long_context": [1, 1, 1]})),
    ]
    (found,) = (each for each in an_evaluation(results).summary() if "cut in the middle" in each)
    assert found.startswith("On 1 of 3 questions the document did not fit the model's window")


def test_rules_can_be_compared_only_where_both_replies_were_kept() -> None:
    names = {each.name for each in tables(an_evaluation(results_of({"rag": [1, 0], "self_route": [1, 0]})))}
    assert "decline_rules" not in names
