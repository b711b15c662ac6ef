"""Record the replies of `make paper`, in rounds: `python benchmarks/paper_recording.py FOLDER`, again and again.

The study asks what `make paper` asks. The prompts that lack a reply are written to `FOLDER/prompts.jsonl`, with
`{document}` for the shipped document where they hold all of it. Let a model answer them in `FOLDER/replies.jsonl` (rows
of `id` and `reply`); the next call takes these in and writes what is missing then. Once no reply is missing,
`FOLDER/grading.jsonl` has the answers without a grade, in an order that says nothing; `FOLDER/grades.jsonl` (rows of
`id` and `grade`) is taken in likewise.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import Field

from demo_recording import add
from paper.datasets import DEMO, resolve
from paper.recorded import FOLDER as RECORDING
from paper.recorded import RecordedStudy, rows_of
from paper.retrieval import load_retriever
from paper.study import Experiment, Study
from selfroute.answerability import declines
from selfroute.errors import InputError
from selfroute_workbench.demo.corpus import load_documents
from selfroute_workbench.demo.reader import StandInReply
from selfroute_workbench.demo.recorded import hash_of
from selfroute_workbench.evaluation.looks import Look
from selfroute_workbench.evaluation.questions import Question
from selfroute_workbench.evaluation.replies import Replies

RETRIEVERS, KS = ("all-MiniLM-L6-v2", "bm25", "tree"), (5, 1, 10, 20)
_HOLE = "(no reply yet)"


class Noting(RecordedStudy):
    """The recorded replies; it notes the prompts without one, and declines them."""

    missing: dict[str, str] = Field(default_factory=dict)

    def _reply(self, prompt: str) -> StandInReply:
        try:
            return super()._reply(prompt)
        except InputError:
            self.missing[hash_of(prompt)] = prompt
            return StandInReply("unanswerable")


class Tree(Experiment):
    """Asks for what `tree` needs level by level: no prompt is noted that a missing reply is a part of."""

    def answer(self, retriever: str, prompt: str) -> str:
        """Answer the prompt of an index, if there is a reply."""
        if _HOLE in prompt:
            return _HOLE
        text = super().answer(retriever, prompt)
        return _HOLE if hash_of(prompt) in self.llm.missing else text  # type: ignore[attr-defined]


def take_in(folder: Path) -> None:
    """Add the replies and grades in a folder to the recording."""
    for row in rows_of(folder / "replies.jsonl"):
        add(RECORDING / "replies.jsonl", {"prompt": row["id"], "reply": row["reply"]})
    graded = {row["id"]: row for row in rows_of(folder / "grading.jsonl")}
    for row in rows_of(folder / "grades.jsonl"):
        one = graded[row["id"]]
        add(RECORDING / "grades.jsonl", {"question": one["of"], "answer": one["answer"], "grade": row["grade"]})


def run(llm: Noting) -> tuple[list[Question], Iterator[Look]]:
    """Ask all that `make paper` asks; return the questions and the looks."""
    questions = resolve(DEMO)
    with Replies() as replies:
        experiment = Tree(llm=llm, replies=replies, concurrency=1)
        retrievers = {name: load_retriever(name, summarize=partial(experiment.answer, name)) for name in RETRIEVERS}
        study = experiment.ask(questions, retrievers, KS)
        for more in (experiment.ask_without, experiment.ask_closed_book):
            more(study)
        if not llm.missing:
            experiment.ask_reasons(study)
    return questions, _looks(study)


def _looks(study: Study) -> Iterator[Look]:
    yield from study.without.values()
    for results in study.results.values():
        for result in results:
            yield from result.paid


def ungraded(questions: list[Question], looks: Iterator[Look]) -> Iterator[dict[str, Any]]:
    """Yield the answers without a grade, by their hashes."""
    known = {(row["question"], row["answer"]) for row in rows_of(RECORDING / "grades.jsonl")}
    by_key, rows = {question.key: question for question in questions}, dict[str, dict[str, Any]]()
    for look in looks:
        answer, question = look.answer.strip(), by_key[look.key]
        if not look.declined and not declines(answer) and (question.id, answer) not in known:
            about = {"of": question.id, "question": question.question, "references": question.answers}
            name = hash_of(f"{question.id} {answer}")
            rows[name] = {"id": name, **about, "answer": answer}
    yield from (rows[name] for name in sorted(rows))


def main(folder: Path) -> None:
    """Take in what was answered, and write what is to be answered next."""
    folder.mkdir(parents=True, exist_ok=True)
    take_in(folder)
    for name in ("prompts", "replies", "grading", "grades"):
        (folder / f"{name}.jsonl").unlink(missing_ok=True)
    (document,) = load_documents().values()
    llm = Noting()
    questions, looks = run(llm)
    for name, prompt in llm.missing.items():
        add(folder / "prompts.jsonl", {"id": name, "prompt": prompt.replace(document, "{document}")})
    (folder / "document.txt").write_text(document, "utf-8")
    for row in () if llm.missing else ungraded(questions, looks):
        add(folder / "grading.jsonl", row)
    found = {path.name: len(rows_of(path)) for path in sorted(folder.glob("*.jsonl"))}
    print(found or "nothing is missing")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
