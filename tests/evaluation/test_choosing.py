"""Options are chosen where they are clearly better, tested on other documents, and stay within their budget."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from choosing_parts import OPTIONS, confident, evaluated, made_up, without
from langchain_parts import a_chain
from llamaindex_parts import an_engine
from look_parts import graded
from selfroute.errors import ConfigurationError
from selfroute_workbench.evaluation.choosing import Options, choose_options, cross_validated
from selfroute_workbench.evaluation.looks import TRIED
from selfroute_workbench.evaluation.replay import Rule
from selfroute_workbench.evaluation.trials import Case, Evidence, cases_of


def chosen(cases: list[Case], **options: Any) -> Options:
    return choose_options(Evidence(cases), OPTIONS, **options)


INVENTED = made_up(200, 20, unanswerable=0.4, missed=0.02, incomplete=0, invents=0.9, graded=False)
# The options that do better than yours, if any; and the verdict: what to take, what it says, and its certainty.
WORLDS: dict[str, tuple[list[Case], str | None, str, str, str]] = {
    "where yours pays": (made_up(200, 20), None, "yours", "It pays: nothing that costs less is level", "better"),
    "where 20 passages do": (
        made_up(200, 20, incomplete=0, graded=False, far=0),
        "rag_20",
        "rag_20",
        "It does not pay here: RAG with 20 passages is as good for less",
        "better",
    ),
    "where the long context invents": (
        INVENTED,
        "rag",
        "rag",
        "It does not pay here: RAG is better for less",
        "better",
    ),
    "where nothing is left to gain": (
        made_up(200, 20, missed=0.0, unanswerable=0, incomplete=0),
        "rag",
        "rag",
        "RAG is as good for less",
        "no difference shown",
    ),
}


@pytest.mark.parametrize("world", WORLDS)
def test_choose_options_and_verdict(world: str) -> None:
    cases, better, strategy, said, certainty = WORLDS[world]
    done = evaluated(cases)
    verdict, advice = done.verdict(), done.advice
    assert (verdict.strategy, verdict.certainty, verdict.options) == (strategy, certainty, OPTIONS[strategy])
    assert said in verdict.sentence
    assert verdict.sentence.startswith("Yours: ")
    assert (advice and advice.rule.strategy) == better
    if advice is not None:
        assert json.loads(json.dumps(advice)) == advice == OPTIONS[advice.rule.strategy]
        assert (advice.gains["yours"].gain, advice.gains["yours"].token_share) >= (0, -1)
        assert any(line.startswith(f"{advice.gains['yours']} over yours") for line in advice.lines)
        own = {name: value for name, value in advice.items() if name != "reach"}  # of what makes the retriever
        a_chain(**own)
        an_engine(**own)


@pytest.mark.matrix
def test_choose_options_budgets() -> None:
    cases, qualities = made_up(200, 20), []
    for share in (0.05, 0.3, 1.0):
        found = chosen(cases, token_share=share)
        assert found.figures.token_share <= max(share, 0.09) + 0.02  # a draft alone takes 0.09
        qualities.append(found.figures.quality)
    assert qualities == sorted(qualities)


def test_choose_options_bounds() -> None:
    """Sections are sure where they are right, and a little less where they are half right."""
    cases = []
    for case in made_up(800, 80, incomplete=0.3):
        draft, *others = case.looks[TRIED]
        if draft.confidence == 30:
            rung, whole = graded(0.5, 290, confidence=68, step="sections"), case.looks["long_context"][0]
            others = [rung, whole]
        tried = {TRIED: [draft, *others]}
        cases.append(replace(case, looks={**case.looks, **tried, "yours": Rule().follow(tried, 1) or ()}))  # type: ignore[arg-type]
    found = chosen(cases)
    assert set(found) == {"doubt_below"}
    assert found["doubt_below"] == 70 or found["doubt_below"][1] == 70
    assert (found.gains["yours"].gain > 0.05, found.gains["yours"].is_distinguishable) == (True, True)


def test_choose_options_noise() -> None:
    moved = 0
    for seed in range(4):
        chance = random.Random(seed)  # noqa: S311
        cases = [confident(case, chance.choice((10, 40, 99))) for case in made_up(80, 16, incomplete=0, seed=seed)]
        moved += "doubt_below" in chosen(cases, token_share=1.0)
    assert moved <= 1


def test_choose_options_chance() -> None:
    """A few better answers of another strategy are chance; the same of many are not."""
    for better, stays in ((3, True), (30, False)):
        cases = made_up(80, 80, missed=0, incomplete=0, graded=False)
        for at, case in enumerate(cases):
            wide = graded(0.0 if at < 2 else 1.0, 95, step="rag")
            own = graded(0.0 if 2 <= at < 2 + better else 1.0, 100, step="rag")
            cases[at] = replace(
                case, looks={**case.looks, "yours": [own], "paper": [own], "rag": [own], "rag_20": [wide]}
            )
        assert (chosen(cases, token_share=1.0).rule == Rule("yours")) is stays


@pytest.mark.parametrize(("questions", "documents"), [(49, 20), (20, 5), (1, 1)])
def test_choose_options_few_questions(questions: int, documents: int) -> None:
    found = chosen(made_up(questions, documents, invents=0.9))
    assert (found.rule, found) == (Rule("yours"), {})
    assert any("too few" in note for note in found.notes)


def test_choose_options_few_documents() -> None:
    found = chosen(made_up(120, 6, incomplete=0, graded=False, far=0))
    assert found == OPTIONS["rag_20"]
    assert any("these documents" in note for note in found.notes)
    assert chosen(made_up(120, 1)).counts == "120 questions on 1 document"


def test_cross_validated_by_document() -> None:
    """Only the questions of one document want the documents read; without it, nobody would read them."""

    def case(document: str, quality: float) -> Case:
        draft, whole = graded(1 - quality, 50, True), graded(1.0, 1000, not quality, step="long_context")
        paper = (draft, whole)
        looks: Any = {"yours": (draft,), "rag": (draft,), "paper": paper, "long_context": (whole,)}
        return Case(document, looks, quality > 0)

    cases = [case(f"d{n // 3}", 0.0) for n in range(60)] + [case("loud", 1.0)] * 80
    assert chosen(cases) == OPTIONS["paper"]
    trial, folds = cross_validated(Evidence(cases))
    assert sum(trial.values[60:]) == 0
    assert folds[Rule("yours")] == 1


def test_choose_options_notes() -> None:
    assert any("unanswerable" in note for note in chosen(made_up(100, 20, unanswerable=0)).notes)
    cases = [without(case, TRIED) if number % 3 else case for number, case in enumerate(made_up(120, 20))]
    found = chosen(cases)
    assert found.rule.strategy != TRIED
    assert any("80 of the questions" in note for note in found.notes)


@pytest.mark.parametrize("wrong", [0, 1.5, float("nan")])
def test_choose_options_bad_token_share(wrong: float) -> None:
    with pytest.raises(ConfigurationError, match="token_share is a share"):
        chosen(made_up(60, 20), token_share=wrong)


@pytest.mark.parametrize("judged", [True, False])
def test_evaluation_options(judged: bool) -> None:
    cases = made_up(100, 20)
    done = evaluated(cases, judged=judged)
    assert done.options() == chosen(cases)
    assert [case.answerable for case in cases_of(done.questions, done.looks, measure="score")] == [
        case.answerable for case in cases
    ]


def test_cases_of_lack_what_is_unfinished_or_ungraded() -> None:
    done = evaluated(made_up(4, 2))
    first, *others = done.looks  # the draft of the first question
    ungraded = [replace(first, judged=None, judged_by=None), *others]
    found = [cases_of(done.questions, looks, measure="judged") for looks in (done.looks, others, ungraded)]
    assert list(map(len, found)) == [4, 3, 3]
