"""The recorded replies: to the prompts of today, found by the vectors that are shipped."""

from __future__ import annotations

import json
import re
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
from llama_index.core import Document as LlamaDocument
from llama_index.core import VectorStoreIndex
from llama_index.core.node_parser import LangchainNodeParser

from command_parts import Run
from llamaindex_selfroute import SelfRouteQueryEngine
from selfroute import PAPER
from selfroute.errors import InputError
from selfroute.prompts import RAG
from selfroute_workbench.demo import with_langchain, with_llamaindex
from selfroute_workbench.demo.corpus import DemoQuestion, load_documents, load_questions
from selfroute_workbench.demo.recorded import K, load_recording
from selfroute_workbench.demo.splitting import make_splitter
from selfroute_workbench.demo.vectors import ShippedVectors
from selfroute_workbench.evaluation import Evaluation, Question
from selfroute_workbench.evaluation.judging import Sheet
from selfroute_workbench.evaluation.looks import Look

QUESTION = load_questions()[1]


def as_question(asked: DemoQuestion) -> Question:
    return Question("demo", asked.id, asked.question, asked.answers)


def test_recorded_prompts_are_current(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = run("demo").out
    assert "other passages" not in shown, "record the replies again: prompts, splitting or the document have changed"
    lines = shown.splitlines()
    assert max(map(len, lines)) <= 80
    story = shown.partition("One question in full")[2].partition("answered by")[0]
    told = [
        re.search(rf"^{field} +\S", story, re.MULTILINE)
        for field in ("Question", "Passages", "Reply", "Reads on", "Answer", "Where")
    ]
    assert all(told), story
    assert "Osric Pellan" in story
    assert len([line for line in lines if " → " in line]) == len(load_questions()) + 1  # with the head


def test_recorded_strategies_match_evaluation(run: Run) -> None:
    record = run("demo", "--json").json
    rows, strategies, ledger = record["questions"], record["strategies"], record["ledger"]
    ours, rag, wide, paper, whole = strategies.values()
    assert list(strategies) == ["Self-Route", "RAG", "RAG, 20 passages", "the paper's rule", "long context"]
    assert ours["tokens"] == ledger["tokens"]["total_tokens"]
    assert ours["right"] == sum(row["grade"] for row in rows)
    assert ours["cost"] == ledger["money"]["cost"]
    assert rag["right"] < wide["right"] < ours["right"]
    page = " ".join((Path(__file__).parents[2] / "docs" / "index.md").read_text("utf-8").split())
    assert all(f"{one['right']:g} for ${float(one['cost']):.2f}" in page for one in strategies.values())
    assert rag["tokens"] < wide["tokens"] < ours["tokens"] < paper["tokens"] < whole["tokens"]

    run("evaluate", "demo", "--out", "results")
    results = json.loads(Path("results/results.json").read_text())
    looks = [Look(**{**look, "passages": ()}) for look in results["looks"]]
    evaluation = Evaluation([Question(**one) for one in results["questions"]], looks, settings=results["settings"])
    for one, name in zip(strategies.values(), ("yours", "rag", "rag_20", "paper", "long_context"), strict=True):
        found = [result for result in evaluation.results if result.strategy == name]
        assert one["right"] == sum(result.judged or 0 for result in found), name
        assert one["tokens"] == sum(result.input_tokens + result.output_tokens for result in found), name


def test_recorded_by_the_papers_rule(run: Run) -> None:
    record = run("demo", "--paper", "--json").json
    assert record["ledger"]["tokens"]["total_tokens"] == record["strategies"]["the paper's rule"]["tokens"]
    assert {row["route"] for row in record["questions"]} == {"rag", "long_context"}


@pytest.mark.parametrize("options", [{}, PAPER], ids=["default", "paper"])
def test_recorded_prompts_of_llamaindex(options: dict[str, Any]) -> None:
    documents = [LlamaDocument(text=text, id_=name) for name, text in load_documents().items()]
    nodes = LangchainNodeParser(make_splitter()).get_nodes_from_documents(documents)
    index = VectorStoreIndex(nodes, embed_model=with_llamaindex.ShippedVectors())
    llm = with_llamaindex.RecordedModel()
    engine = SelfRouteQueryEngine.from_index(index, llm=llm, similarity_top_k=K, **options)
    for question in load_questions():
        engine.query(question.question)
    assert llm.differing == set()


def test_recorded_models() -> None:
    asked = RAG.format(context="...", question=QUESTION.question, refusal="unanswerable")
    chat, completion = with_langchain.RecordedModel(), with_llamaindex.RecordedModel()
    assert (chat.invoke(asked).text, completion.complete(asked).text) == ("£104 a tonne", "£104 a tonne")
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
        (RAG.format(context="...", question="Who?", refusal="x"), "no reply to 'Who\\?' was recorded.* in Python"),
        (f"...\n\nQuestion: {QUESTION.question}\nAnswer:", "no reply to this prompt was recorded.* in Python"),
        (
            Sheet.of(as_question(QUESTION), ["Another answer"]).prompt,
            "no grade was recorded for the answer 'Another answer'",
        ),
    ],
)
def test_recorded_errors(asked: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_recording().reply(asked)


def test_shipped_vectors_of_another_text() -> None:
    with pytest.raises(InputError, match=r"no vector of 'Who\?' came with selfroute.* in Python") as raised:
        ShippedVectors().embed_query("Who?")
    modules = re.findall(r"selfroute_workbench\.[\w.]+", str(raised.value))
    assert len(modules) == 2
    assert all(callable(resolve_name(f"{module}:load_embeddings")) for module in modules)


def test_recorded_answers_have_grades() -> None:
    recording = load_recording()
    assert set(recording.replies) == {question.id for question in load_questions()}
    for id_, replies in recording.replies.items():
        for step, *_, reply in replies:
            answer = reply.partition("\n")[2] or reply if step.startswith("graded") else reply
            assert answer == "unanswerable" or recording.grade(id_, answer) in {0, 0.5, 1}


@pytest.mark.parametrize("option", [["--k", "7"], ["--paper"], ["--judge"], ["--embeddings", "any"]])
def test_recorded_evaluate_refuses_options(run: Run, option: list[str]) -> None:
    result = run("evaluate", "demo", *option)
    assert (result.code, "not recorded" in result.err) == (2, True)
    assert result.err.startswith(f"selfroute: {option[0]}")
