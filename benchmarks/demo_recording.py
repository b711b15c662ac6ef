"""Record the replies of the demo, in rounds: `python benchmarks/demo_recording.py FOLDER`, again and again.

Every strategy of the demo asks all questions by the real chain, until a reply is not recorded. The prompts that lack
one are written to `FOLDER/<step>.jsonl`. Let a model answer them in `FOLDER/<step>.replies.jsonl` (rows of `id` and
`reply`); the next call takes these in and writes the prompts of the next round over the last one's. Once no reply is
missing, `FOLDER/grading.jsonl` has the answers without a grade; `FOLDER/grading.replies.jsonl` (`id` and `grade`) is
taken in likewise.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import Field
from rich.console import Console

import selfroute_workbench.demo
from selfroute.answerability import declines, declines_anywhere
from selfroute.answerability.scores import numbers_of
from selfroute.errors import InputError
from selfroute_workbench.command.demo import STRATEGIES, open_library
from selfroute_workbench.command.models import Models
from selfroute_workbench.command.options import Options
from selfroute_workbench.command.sessions import Session
from selfroute_workbench.command.texts import Text
from selfroute_workbench.demo.corpus import load_documents, load_questions
from selfroute_workbench.demo.reader import StandInReply
from selfroute_workbench.demo.recorded import K, hash_of, load_recording, step_of
from selfroute_workbench.demo.with_langchain import RecordedModel

RECORDING = Path(selfroute_workbench.demo.__path__[0]) / "recording"
SECTIONS = "graded_sections"


class MissingReplyError(Exception):
    """No reply to this very prompt is recorded."""


class Noting(RecordedModel):
    """The recorded replies to exactly the recorded prompts; it keeps what it is asked."""

    prompts: list[str] = Field(default_factory=list)

    def _reply(self, prompt: str) -> StandInReply:
        self.prompts.append(prompt)
        differing = set[str]()
        with suppress(InputError):
            reply = load_recording().reply(prompt, differing)
            if not differing:
                return reply
        raise MissingReplyError


def take_in(folder: Path) -> None:
    """Add the replies and grades in a folder to the recording."""
    ids = {question.question: question.id for question in load_questions()}
    for path in sorted(folder.glob("*.replies.jsonl")):
        asked = {row["id"]: row for row in _rows(path.with_name(path.name.replace(".replies", "")))}
        for row in _rows(path):
            one = asked[row["id"]]
            if "grade" in row:
                about = {"question": ids[one["question"]], "answer": one["answer"]}
                add(RECORDING / "grades.jsonl", {**about, "grade": row["grade"]})
            else:
                about = {"question": one["question"], "step": one["step"].removesuffix("_20"), "prompt": one["id"]}
                add(RECORDING / "replies.jsonl", {**about, "characters": one["characters"], "reply": row["reply"]})


def ask_all() -> Iterator[dict[str, Any]]:
    """Ask all questions by each strategy, and yield the prompts without a reply."""
    texts = [Text(*each) for each in load_documents().items()]
    library = open_library(texts, Options(), progress=Console(quiet=True))
    for name, (k, chain) in STRATEGIES.items():
        llm = Noting()
        session = Session(library, Models(llm, None, name), Options(k=k), chain)
        for question in load_questions():
            llm.prompts.clear()
            try:
                session.ask(question.question)
            except MissingReplyError:
                prompt = llm.prompts[-1]
                step = step_of(prompt)
                about = {"rung": sum(step_of(one) == step for one in llm.prompts) - 1} if step == SECTIONS else {}
                step = "rag_20" if step == "rag" and k > K else step
                row = {"id": hash_of(prompt), "question": question.id, "step": step, **about}
                yield {**row, "characters": len(prompt), "prompt": prompt}


def ungraded() -> Iterator[dict[str, Any]]:
    """Yield the recorded answers without a grade, by their hashes: in an order that says nothing."""
    recording, rows = load_recording(), dict[str, dict[str, Any]]()
    for question in load_questions():
        for step, *_, text in recording.replies[question.id]:
            answer = numbers_of(text, 1 if step == SECTIONS else 2)[1] if step.startswith("graded") else text
            judge = declines_anywhere if step == "long_context" else declines
            if not judge(answer).declined and (question.id, answer.strip()) not in recording.grades:
                name = hash_of(f"{question.id} {answer.strip()}")
                about = {"question": question.question, "references": question.answers}
                rows[name] = {"id": name, **about, "answer": answer.strip()}
    yield from (rows[name] for name in sorted(rows))


def main(folder: Path) -> None:
    """Take in what was answered, and write what is to be answered next."""
    folder.mkdir(parents=True, exist_ok=True)
    take_in(folder)
    for name in ("*.replies", "rag", "rag_20", "graded", SECTIONS, "long_context", "grading"):
        for path in folder.glob(f"{name}.jsonl"):
            path.unlink()
    (document,) = load_documents().values()
    rows = list({row["id"]: row for row in ask_all()}.values())
    for row in rows:
        if row["step"] == "long_context":
            row["prompt"] = row["prompt"].replace(document.strip(), "{document}")
            (folder / "long_context_document.txt").write_text(document, "utf-8")
        add(folder / f"{row['step']}.jsonl", row)
    for row in () if rows else ungraded():
        add(folder / "grading.jsonl", row)
    print({path.name: len(_rows(path)) for path in sorted(folder.glob("*.jsonl"))} or "nothing is missing")


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def add(path: Path, row: dict[str, Any]) -> None:
    """Add a row to a JSONL file."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
