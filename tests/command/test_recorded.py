"""The recorded replies: to the prompts of today, found by the vectors that are shipped."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from command_parts import Run
from selfroute.errors import InputError
from selfroute.prompts import RAG
from selfroute_workbench.demo import with_langchain, with_llamaindex
from selfroute_workbench.demo.corpus import DemoQuestion, load_questions
from selfroute_workbench.demo.recorded import load_recording
from selfroute_workbench.evaluation import Evaluation, Question
from selfroute_workbench.evaluation.judging import Sheet
from selfroute_workbench.evaluation.looks import Look

QUESTION = load_questions()[0]


def as_question(asked: DemoQuestion) -> Question:
    return Question("demo", asked.id, asked.question, asked.answers)


def test_recorded_prompts_are_current(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = run("demo").out
    assert "other passages" not in shown, "record the replies anew: prompts, splitting or documents have changed"
    lines = shown.splitlines()
    assert max(map(len, lines)) <= 80
    story = shown.partition("One question in full")[2].partition("answered by")[0]
    told = [
        re.search(rf"^{field} +\S", story, re.MULTILINE)
        for field in ("Question", "Passages", "Draft", "Reads on", "Answer", "Where")
    ]
    assert all(told), story
    assert "Osric Pellan, diver, for £180" in story
    assert len([line for line in lines if " → " in line]) == len(load_questions()) + 1  # with the head


def test_recorded_strategies_match_replay(run: Run) -> None:
    """The demo asks the real chain by each strategy, and the evaluation replays the looks of the same recording."""
    record = run("demo", "--json").json
    rows, strategies = record["questions"], record["strategies"]
    by_routing = ["RAG, then sections", "Self-Route", "Self-Route, graded"]
    assert list(strategies) == ["RAG alone", *by_routing, "long context alone"]
    assert strategies["Self-Route"]["tokens"] == record["ledger"]["tokens"]["total_tokens"]
    assert strategies["Self-Route"]["right"] == sum(row["grade"] for row in rows)
    assert strategies["Self-Route"]["cost"] == record["ledger"]["money"]["cost"]
    assert strategies["RAG alone"]["tokens"] < strategies["Self-Route"]["tokens"]
    assert {row["route"] for row in rows if row["decision"]["declined"]} == {"long_context"}

    run("evaluate", "demo", "--out", "results")
    results = json.loads(Path("results/results.json").read_text())
    looks = [Look(**{**look, "passages": ()}) for look in results["looks"]]
    questions = [Question(**question) for question in results["questions"]]
    evaluation = Evaluation(questions, looks, settings=results["settings"])
    names = {"RAG alone": "rag", "Self-Route": "self_route", "Self-Route, graded": "graded"}
    for shown, name in {**names, "long context alone": "long_context"}.items():
        one = strategies[shown]
        replayed = [result for result in evaluation.results if result.strategy == name]
        assert one["right"] == sum(result.judged or 0 for result in replayed), name
        assert one["tokens"] == sum(result.input_tokens + result.output_tokens for result in replayed), name
    routes = {result.key[1]: result.route for result in evaluation.results if result.strategy == "self_route"}
    assert [routes[row["id"]] for row in rows] == [row["route"] for row in rows]


def test_recorded_models() -> None:
    asked = RAG.format(context="...", question=QUESTION.question, refusal="unanswerable")
    chat, completion = with_langchain.RecordedModel(), with_llamaindex.RecordedModel()
    assert (chat.invoke(asked).text, completion.complete(asked).text) == ("The Alderman", "The Alderman")
    assert chat.differing == completion.differing == {QUESTION.id}


def test_recorded_grades_as_judge() -> None:
    recording = load_recording()
    for question in map(as_question, load_questions()):
        known = {
            answer: grade
            for (id_, answer), grade in recording.grades.items()
            if id_ == recording.ids[question.question]
        }
        for candidates in (list(known), list(known)[:1]):
            if candidates:
                sheet = Sheet.of(question, candidates)
                assert sheet.read(recording.reply(sheet.prompt).text) == {one: known[one] for one in candidates}


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (RAG.format(context="...", question="Who?", refusal="x"), "no reply to 'Who\\?' was recorded"),
        (f"...\n\nQuestion: {QUESTION.question}\nAnswer:", "no reply to this prompt was recorded"),
        (
            Sheet.of(as_question(QUESTION), ["Another answer"]).prompt,
            "no grade was recorded for the answer 'Another answer'",
        ),
    ],
)
def test_recorded_errors(asked: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_recording().reply(asked)


def test_recorded_answers_have_grades() -> None:
    recording, kinds = load_recording(), {question.id: question.kind for question in load_questions()}
    assert {id_ for id_, _ in recording.replies} == set(kinds)
    for (id_, step), (_, reply) in recording.replies.items():
        answer = reply.partition("\n")[2] or reply if step.startswith("graded") else reply
        assert answer == "unanswerable" or recording.grade(id_, answer) in {0, 0.5, 1}


@pytest.mark.parametrize("option", [["--k", "7"], ["--strategies", "sections"], ["--judge"], ["--embeddings", "any"]])
def test_recorded_evaluate_refuses_options(run: Run, option: list[str]) -> None:
    result = run("evaluate", "demo", *option)
    assert (result.code, "not recorded" in result.err) == (2, True)
    assert result.err.startswith(f"selfroute: {option[0]}")
