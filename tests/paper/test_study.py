"""The study of the papers: what it asks and tabulates, on small data, with a scripted model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import langchain_parts
from look_parts import a_question
from paper import __main__ as command
from paper.found import Found, Retriever
from paper.prompts import PROMPTS, prompt_of
from paper.study import PaperPipelines, Variant, ask, ask_based_only_on, ask_closed_book, ask_reasons, asker_of
from paper.tables import tables
from selfroute_workbench.evaluation.replies import Replies

WORDS = " ".join(f"word{number}" for number in range(900))
QUESTIONS = [
    a_question(name, dataset, answers=("seven",), document=f"{WORDS} The end of {name} is seven. {WORDS}")
    for name, dataset in (("a", "narrativeqa"), ("b", "narrativeqa"), ("c", "qasper"))
]


class First(Retriever):
    """Finds the first chunks."""

    def search(self, chunks: Any, question: str, *, k: int, document_id: str) -> list[Found]:
        return [Found(number, chunk, 1.0) for number, chunk in enumerate(chunks[:k])]


def write(prompt: str) -> tuple[str]:
    """Answers from the whole document, and from passages one question alone."""
    if "JSON" in prompt:
        return ('{"answerable": false, "reason": "D"}',)
    if "word" not in prompt:  # from memory
        return ("seven" if "What is b?" in prompt else "unanswerable",)
    return ("seven",) if "The end of" in prompt or "What is a?" in prompt else ("unanswerable",)


@pytest.fixture
def model() -> langchain_parts.ScriptedModel:
    return langchain_parts.ScriptedModel(draft=write, final=write, usage=True, marker="The end of")


def test_study_main_and_k(model: langchain_parts.ScriptedModel) -> None:
    with Replies() as replies:
        study = ask(QUESTIONS, PaperPipelines(model, replies), {"first": First(), "again": First()}, [1, 2])
    assert not study.failures
    assert list(study.results) == [Variant("first", 1), Variant("first", 2), Variant("again", 1)]
    assert len(model.calls) == 3 * 2 + 3, "each document is read once, and the same passages are asked about once"
    made = {table.name: table for table in tables(study)}
    rows = {row[:3]: row[3:] for row in made["main"].rows}
    assert rows["RAG", "first", 1] == (25, 50, 0)
    assert rows["Self-Route", "first", 2] == rows["long context", "again", 1] == (100, 100, 100)
    assert rows["answerable %", "first", 1] == (25, 50, 0)
    assert 50 < rows["token %", "first", 1][0] < 150
    assert [row[:2] for row in made["k"].rows] == [(1, 25), (2, 25)]
    assert made["retrievers"].rows[0] == ("first", "chunks", 1, 3, pytest.approx(100 / 3), 0, 0, pytest.approx(100 / 3))
    assert [row[0] for row in made["retrievers"].rows] == ["first", "first", "again"]


def test_study_prompts(
    model: langchain_parts.ScriptedModel,
) -> None:
    with Replies() as replies:
        ask(QUESTIONS[2:], PaperPipelines(model, replies), {"first": First()}, [2])
    whole, draft = sorted((call.prompt for call in model.calls), key=lambda prompt: "[1]" in prompt)
    opening = PROMPTS["qasper"].partition("{context}")[0].format(refusal="unanswerable")
    end = "Question: What is c?\n\nAnswer:"
    assert whole.startswith(f"{opening}{QUESTIONS[2].document}")
    passages = draft.removeprefix(opening).partition("\n\nAnswer the question based")[0].split("\n\n")
    assert [passage.partition(" ")[0] for passage in passages] == ["[1]", "[2]"]
    assert [len(passage.split()) for passage in passages] == [301, 301]
    assert draft.endswith(end)
    assert whole.endswith(end)


def test_study_other_experiments(model: langchain_parts.ScriptedModel) -> None:
    with Replies() as replies:
        pipelines = PaperPipelines(model, replies)
        study = ask(QUESTIONS, pipelines, {"first": First()}, [1])
        before = len(model.calls)
        ask_based_only_on(study, pipelines)
        ask_closed_book(study, asker_of(model, replies))
        ask_reasons(study, asker_of(model, replies))
    assert len(model.calls) - before == 3 + 3 + 2
    made = {table.name: table for table in tables(study)}
    assert made["closed_book"].rows[:3] == (("questions", 3, 2), ("long context", 100, 100), ("RAG", 25, 50))
    assert [row[2:] for row in made["filtered"].rows] == [(2, 1, 50, None, "open"), (1, 1, 100, None, "open")]
    assert [row[1:] for row in made["based_only_on"].rows] == [(100, 100, None, None)] * 2
    assert made["reasons"].rows == (("D implicit", 2),)
    with_sentence = [call.prompt for call in model.calls if "Answer based only on the provided passage." in call.prompt]
    assert len(with_sentence) == 3


def test_study_comparison(model: langchain_parts.ScriptedModel) -> None:
    asked = [replace(QUESTIONS[0], kind="fact"), replace(QUESTIONS[1], question="Who is b?"), QUESTIONS[2]]
    with Replies() as replies:
        made = {
            table.name: table for table in tables(ask(asked, PaperPipelines(model, replies), {"first": First()}, [1]))
        }
    assert made["wins"].rows == (
        ("narrativeqa", 2, 2, 1, 1, 0, 1, 0),
        ("qasper", 1, 1, 0, 1, 0, 1, 0),
        ("Overall", 3, 3, 1, 2, 0, 2, 0),
    )
    assert [row[:3] for row in made["kinds"].rows] == [
        ("first word", "what", 2),
        ("first word", "who", 1),
        ("kind", "fact", 1),
    ]
    assert made["differences"].rows == ((-100, 2, pytest.approx(200 / 3), 50), (0, 1, pytest.approx(100 / 3), 100))
    assert made["agreement"].rows[0][1:] == (pytest.approx(100 / 3), 63)


@pytest.mark.parametrize(
    ("fields", "prompt"),
    [
        ({"dataset": "musique"}, "musique"),
        ({"dataset": "passkey-larger"}, "passkey"),
        ({"dataset": "mine"}, "multifieldqa"),
        ({"dataset": "mine", "metric": "rouge_l"}, "qmsum"),
        ({"dataset": "mine", "metric": "choice"}, "en.mc"),
    ],
)
def test_prompt_of(fields: Any, prompt: str) -> None:
    assert prompt_of(a_question(**fields)) == PROMPTS[prompt]


def test_study_is_kept(model: langchain_parts.ScriptedModel, tmp_path: Path) -> None:
    for asked in (6, 0):
        before = len(model.calls)
        with Replies(tmp_path) as replies:
            ask(QUESTIONS, PaperPipelines(model, replies), {"first": First()}, [1])
        assert len(model.calls) - before == asked


def test_study_command(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert command.main(["demo", "--limit", "3", "--k", "2", "--retriever", "bm25"]) == 0
    assert "of 3 questions (Table 1)" in capsys.readouterr().out
    assert command.main(["nowhere"]) == 2
    assert "'nowhere' is neither a data set nor a file" in capsys.readouterr().err
