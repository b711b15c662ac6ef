"""Replies of a language model to the demo's prompts, recorded once, so that the demo needs no key."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, NamedTuple

from selfroute.errors import InputError
from selfroute.prompts import GRADED, LONG_CONTEXT, RAG, SECTIONS
from selfroute_workbench.demo.corpus import load_questions
from selfroute_workbench.demo.reader import StandInReply

NAME = "recorded-claude"
LABEL = "recorded replies of Claude"
PRICED_AS = "anthropic:claude-sonnet-4-5"
"""What the recording is priced as: it was not paid by the token."""
K = 5
"""How many passages the recorded drafts were given; those of plain RAG also 20."""

_INSTRUCTIONS = {
    step: template.partition("{context}")[2].partition("{refusal}")[0]
    for step, template in (
        ("rag", RAG),
        ("graded", GRADED),
        ("graded_sections", SECTIONS),
        ("long_context", LONG_CONTEXT),
    )
}
_USE = (
    "use a model: --model openai:gpt-5-mini in a command, any chat model in place of RecordedModel() in Python, such "
    'as init_chat_model("openai:gpt-5-mini")'
)
_NO_REPLY = (
    "no reply to this prompt was recorded: the recording holds replies to the default prompts and the plain ones, for "
    f"the passages, sections and documents that the demo reads; for others {_USE}"
)
_GRADING = re.compile(r'^\{"(?:question|answer)": .*\}$', re.MULTILINE)


class Reply(NamedTuple):
    """A recorded reply, and the prompt that it is to: its step, its hash and how long it is."""

    step: str
    prompt: str
    characters: int
    text: str


@dataclass(frozen=True, slots=True)
class Recording:
    """The replies to the shipped questions, and the grades of the answers.

    `recording/README.md` says which model gave them, when and how.
    """

    replies: Mapping[str, Sequence[Reply]]
    grades: Mapping[tuple[str, str], float]
    ids: Mapping[str, str]

    def reply(self, prompt: str, differing: set[str] | None = None) -> StandInReply:
        """Return the reply to a prompt of the demo, or to one that asks for the grades of its answers.

        Where other passages were found than were recorded, it is the reply to the prompt of this kind whose length is
        nearest.

        Args:
            prompt: The prompt.
            differing: To this set the id of a question is added whose passages are others than were recorded.

        Raises:
            InputError: None was recorded for this question, or to such a prompt.
        """
        rows = [json.loads(line) for line in _GRADING.findall(prompt)]
        if answers := [row for row in rows if "answer" in row]:
            question = self._id_of(rows[0].get("question", ""))
            return StandInReply("\n".join(f"{row['answer']}: {self.grade(question, row['text']):g}" for row in answers))
        question = self._id_of(prompt.rpartition("Question: ")[2].rstrip().removesuffix("Answer:").strip())
        step, digest = step_of(prompt), hash_of(prompt)
        known = [reply for reply in self.replies.get(question, ()) if reply.step == step]
        if not known:
            raise InputError(_NO_REPLY)
        found = next((reply for reply in known if digest == reply.prompt), None)
        if found is None and differing is not None:
            differing.add(question)
        return StandInReply((found or min(known, key=lambda one: abs(one.characters - len(prompt)))).text)

    def grade(self, question: str, answer: str) -> float:
        """Return how right an answer to a question was judged, by meaning: 1, 0.5 or 0.

        Raises:
            InputError: It was not recorded.
        """
        try:
            return self.grades[question, answer.strip()]
        except KeyError:
            msg = (
                f"no grade was recorded for the answer {answer!r}: ask a model, by --judge provider:name in a command, "
                "in Python by judge= of evaluate()"
            )
            raise InputError(msg) from None

    def _id_of(self, question: str) -> str:
        try:
            return self.ids[question]
        except KeyError:
            msg = (
                f"no reply to {question!r} was recorded: the recording holds only the {len(self.ids)} questions that "
                f"come with selfroute (load_questions() in selfroute_workbench.demo.corpus); for others {_USE}"
            )
            raise InputError(msg) from None


def hash_of(prompt: str) -> str:
    """Return the hash by which a prompt is found."""
    return sha256(prompt.encode()).hexdigest()[:16]


@cache
def load_recording() -> Recording:
    """Return the recording that comes with the package."""
    replies: dict[str, list[Reply]] = {}
    for row in _rows("replies.jsonl"):
        reply = Reply(row["step"], row["prompt"], row["characters"], row["reply"])
        replies.setdefault(row["question"], []).append(reply)
    return Recording(
        replies,
        {(row["question"], row["answer"]): float(row["grade"]) for row in _rows("grades.jsonl")},
        {question.question: question.id for question in load_questions()},
    )


def _rows(name: str) -> list[dict[str, Any]]:
    text = (files("selfroute_workbench.demo") / "recording" / name).read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def step_of(prompt: str) -> str:
    """Return the step whose instruction stands last in a prompt: the text before it may hold anything.

    Raises:
        InputError: None does.
    """
    places = {step: prompt.rfind(instruction) for step, instruction in _INSTRUCTIONS.items()}
    last = max(places, key=lambda step: places[step])
    if places[last] < 0:
        raise InputError(_NO_REPLY)
    return last
