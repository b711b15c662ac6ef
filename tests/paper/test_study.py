"""The study of the papers: what it asks and tabulates, on small data, with a scripted model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import langchain_parts
from look_parts import a_question
from paper import __main__ as command
from paper.found import Found, Retriever
from paper.prompts import PROMPTS, prompt_of
from paper.study import PaperPipelines, Variant, ask, ask_based_only_on, ask_closed_book, ask_reasons, asker_of, tables
from selfroute.evaluation.replies import Replies

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


def test_table_1_and_the_ablation_of_k_are_by_replay(model: langchain_parts.ScriptedModel) -> None:
    with Replies() as replies:
        study = ask(QUESTIONS, PaperPipelines(model, replies), {"first": First(), "again": First()}, [1, 2])
    assert not study.failures
    assert list(study.results) == [Variant("first", 1), Variant("first", 2), Variant("again", 1)]
    assert len(model.calls) == 3 * 2 + 3, "each document is read once, and the same passages are asked about once"
    main, sequel = tables(study)
    rows = {row[:3]: row[3:] for row in main.rows}
    assert rows["RAG", "first", 1] == (25, 50, 0)
    assert rows["Self-Route", "first", 2] == rows["long context", "again", 1] == (100, 100, 100)
    assert rows["answerable %", "first", 1] == (25, 50, 0)
    assert 50 < rows["token %", "first", 1][0] < 150
    assert [row[4:] for row in sequel.rows if row[1] == "first"] == [(pytest.approx(100 / 3),) * 2] * 2


def test_prompts_are_the_papers_with_numbered_chunks_of_300_words_or_the_whole_document(
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


def test_the_other_experiments_ask_once_for_each_question(model: langchain_parts.ScriptedModel) -> None:
    with Replies() as replies:
        pipelines = PaperPipelines(model, replies)
        study = ask(QUESTIONS, pipelines, {"first": First()}, [1])
        before = len(model.calls)
        ask_based_only_on(study, pipelines)
        ask_closed_book(study, asker_of(model, replies))
        ask_reasons(study, asker_of(model, replies))
    assert len(model.calls) - before == 3 + 3 + 2
    made = {table.name: table for table in tables(study)}
    assert made["closed_book"].rows[:2] == (("questions", 3, 2), ("RAG", pytest.approx(100 / 3), 50))
    assert made["based_only_on"].rows == (("long context", 100, 100),)
    assert made["reasons"].rows == (("D", 2),)
    with_sentence = [call.prompt for call in model.calls if "Answer based only on the provided passage." in call.prompt]
    assert len(with_sentence) == 3


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
def test_a_question_has_the_prompt_of_its_data_set_or_of_what_is_most_alike(fields: Any, prompt: str) -> None:
    assert prompt_of(a_question(**fields)) == PROMPTS[prompt]


def test_a_cap_ends_the_study_and_a_second_run_pays_nothing(
    model: langchain_parts.ScriptedModel, tmp_path: Path
) -> None:
    for asked in (6, 0):
        before = len(model.calls)
        with Replies(tmp_path) as replies:
            ask(QUESTIONS, PaperPipelines(model, replies), {"first": First()}, [1])
        assert len(model.calls) - before == asked


def test_the_command_prints_the_tables_without_a_key(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command.main(["demo", "--limit", "3", "--k", "2", "--retriever", "bm25"]) == 0
    assert "Table 1, 3 questions" in capsys.readouterr().out
    assert command.main(["nowhere"]) == 2
    assert "'nowhere' is neither a data set nor a file" in capsys.readouterr().err
