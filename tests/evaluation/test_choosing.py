"""Options are chosen where they are clearly better, tested on other documents, and stay within their budget."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from choosing_parts import confident, evaluated, made_up, without
from langchain_parts import a_chain
from llamaindex_parts import an_engine
from look_parts import graded
from selfroute.errors import ConfigurationError
from selfroute_workbench.evaluation.choosing import Options, choose_options, cross_validated
from selfroute_workbench.evaluation.replay import Rule
from selfroute_workbench.evaluation.trials import Evidence, Row, rows_of


def chosen(rows: list[Row], **options: Any) -> Options:
    return choose_options(Evidence(rows), **{"sections": 4_000, **options})


GRADED = {"answerability": "graded", "doubt_below": 50, "stop_below": 20}
INVENTED = made_up(200, 20, unanswerable=0.4, missed=0.02, incomplete=0, invents=0.9, graded=False)
# The options, and the verdict: what to take, and whether it is better than RAG alone, or RAG than all others.
WORLDS: dict[str, tuple[list[Row], dict[str, Any], str, str]] = {
    "where the long context invents": (INVENTED, {"max_documents": 0}, "rag", "better"),
    "where declines can be answered": (made_up(200, 20, incomplete=0, graded=False), {}, "self_route", "better"),
    "where sections answer as well": (made_up(200, 20), {**GRADED, "sections": 4_000}, "graded_sections", "better"),
    "where nothing is left to gain": (
        made_up(200, 20, missed=0.0, incomplete=0, graded=False),
        {"max_documents": 0},
        "rag",
        "no difference shown",
    ),
}


@pytest.mark.parametrize("world", WORLDS)
def test_choose_options_and_verdict(world: str) -> None:
    rows, options, strategy, certainty = WORLDS[world]
    found = chosen(rows)
    assert json.loads(json.dumps(found)) == found == options
    assert all(found.gains[name].gain >= 0 for name in ("rag", "self_route"))
    a_chain(**found)
    an_engine(**found)
    numbered = any("graded" in row.looks for row in rows)
    ran = ["rag", "self_route", *(["sections", "graded", "graded_sections"] if numbered else []), "long_context"]
    verdict = evaluated(rows, strategies=ran).verdict()
    assert (verdict.strategy, verdict.certainty, verdict.options) == (strategy, certainty, options)
    assert verdict.lines[0] == verdict.sentence
    assert ("better" in verdict.sentence) is (certainty == "better")


def test_choose_options_doubt_where_drafts_are_incomplete() -> None:
    assert chosen([without(row, "sections", "graded_sections") for row in made_up(200, 20, incomplete=0.1)]) == GRADED


@pytest.mark.matrix
def test_choose_options_budgets() -> None:
    rows, qualities = made_up(200, 20), []
    for share in (0.05, 0.3, 1.0):
        found = chosen(rows, token_share=share)
        assert found.figures.token_share <= max(share, 0.09) + 0.02  # a draft alone takes 0.09
        qualities.append(found.figures.quality)
    assert qualities == sorted(qualities)


def test_choose_options_both_bounds() -> None:
    """Sections are sure where they are right, and less sure where they are half right."""
    rows = [
        replace(row, looks={**row.looks, "graded_sections": [graded(0.5, 290, confidence=55)]})
        if row.looks["graded"][0].confidence == 30 and row.answerable
        else row
        for row in made_up(800, 80, incomplete=0.3)
    ]
    assert chosen(rows, token_share=0.575) == {**GRADED, "doubt_below": [50, 60], "sections": 4_000}


def test_choose_options_noise() -> None:
    moved = 0
    for seed in range(4):
        chance = random.Random(seed)  # noqa: S311
        rows = [confident(row, chance.choice((10, 40, 99))) for row in made_up(80, 16, incomplete=0, seed=seed)]
        found = chosen(rows, token_share=1.0)
        moved += "answerability" in found and (found["doubt_below"], found["stop_below"]) != (50, 20)
    assert moved <= 1


@pytest.mark.parametrize(("questions", "documents"), [(49, 20), (20, 5), (1, 1)])
def test_choose_options_few_questions(questions: int, documents: int) -> None:
    found = chosen(made_up(questions, documents, invents=0.9))
    assert found == {}
    assert any("too few" in note for note in found.notes)


def test_choose_options_few_documents() -> None:
    found = chosen(made_up(120, 6), token_share=1.0)
    assert GRADED.items() <= found.items()
    assert any("these documents" in note for note in found.notes)
    assert chosen(made_up(120, 1)).counts == "120 questions on 1 document"


def test_cross_validated_by_document() -> None:
    """Only the questions of one document want the documents read; without it, nobody would read them."""
    quiet = Row("", {"rag": [graded(1.0, 50, True)], "long_context": [graded(0.0, 1000)]}, False)
    loud = Row("loud", {"rag": [graded(0.0, 50, True)], "long_context": [graded(1.0, 1000)]}, True)
    rows = [replace(quiet, document=f"d{n // 3}") for n in range(60)] + [loud] * 80
    assert chosen(rows) == {}
    trial, folds = cross_validated(Evidence(rows))
    assert sum(trial.values[60:]) == 0
    assert folds[Rule("rag")] == 1


def test_choose_options_notes() -> None:
    assert any("unanswerable" in note for note in chosen(made_up(100, 20, unanswerable=0)).notes)
    rows = [without(row, "graded") if number % 3 else row for number, row in enumerate(made_up(120, 20))]
    found = chosen(rows)
    assert "answerability" not in found
    assert any("80 of the questions" in note for note in found.notes)


@pytest.mark.parametrize("wrong", [0, 1.5, float("nan")])
def test_choose_options_bad_token_share(wrong: float) -> None:
    with pytest.raises(ConfigurationError, match="token_share is a share"):
        chosen(made_up(60, 20), token_share=wrong)


@pytest.mark.parametrize("judged", [True, False])
def test_evaluation_options(judged: bool) -> None:
    rows = made_up(100, 20)
    done = evaluated(rows, judged=judged)
    assert done.options() == chosen(rows)
    assert [row.answerable for row in rows_of(done.questions, done.looks, measure="score")] == [
        row.answerable for row in rows
    ]


def test_rows_of_lack_what_is_unfinished_or_ungraded() -> None:
    done = evaluated(made_up(4, 2))
    first, *others = done.looks  # the draft of the first question
    ungraded = [replace(first, judged=None, judged_by=None), *others]
    found = [rows_of(done.questions, looks, measure="judged") for looks in (done.looks, others, ungraded)]
    assert list(map(len, found)) == [4, 3, 3]
