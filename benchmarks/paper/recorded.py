"""Replies of a language model to the study's prompts for the shipped document: `make paper` needs no key.

`benchmarks/recordings/paper/README.md` says which model gave them, and how.
"""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any

from typing_extensions import override

from selfroute.errors import InputError
from selfroute_workbench.demo.corpus import load_questions
from selfroute_workbench.demo.reader import StandInReply
from selfroute_workbench.demo.recorded import Recording, hash_of
from selfroute_workbench.demo.with_langchain import RecordedModel

FOLDER = Path(__file__).resolve().parents[1] / "recordings" / "paper"
_MISSING = (
    "no reply to this prompt was recorded: the recording holds what `make paper` asks of the shipped document; for "
    "other data, retrievers or numbers of passages name a model with --model provider:name"
)


class RecordedStudy(RecordedModel):
    """The recorded replies, to exactly the prompts that were asked; as a judge it repeats the recorded grades."""

    @cached_property
    def _recorded(self) -> tuple[dict[str, str], Recording]:
        replies, grades = (rows_of(FOLDER / f"{name}.jsonl") for name in ("replies", "grades"))
        known = {(row["question"], row["answer"]): float(row["grade"]) for row in grades}
        judge = Recording({}, known, {one.question: one.id for one in load_questions()})
        return {row["prompt"]: row["reply"] for row in replies}, judge

    @override
    def _reply(self, prompt: str) -> StandInReply:
        replies, judge = self._recorded
        if (text := replies.get(hash_of(prompt))) is not None:
            return StandInReply(text)
        try:
            return judge.reply(prompt)
        except InputError as error:
            raise InputError(str(error) if "grade" in str(error) else _MISSING) from None


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Read a JSONL file; one that is missing has no rows."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []
