"""Lead questions through sections of their documents by several bounds, and compare these with the recorded prompts."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document
from langchain_text_splitters import RecursiveCharacterTextSplitter

from replayed_chain import SECTION_TOKENS, Recording, Replay, ask, options_of
from selfroute import prompts

if TYPE_CHECKING:
    from selfroute_workbench.evaluation.trials import GradedLook

Json = dict[str, Any]
Span = tuple[int, int]
BOUNDS = ((50, 50), (70, 50), (70, 60), (70, 70))
STOP_BELOW = 20
TOKENS = (SECTION_TOKENS, 4_000)
OTHERS = 8
_SPLITTER = RecursiveCharacterTextSplitter(chunk_size=1_200, chunk_overlap=200, add_start_index=True)
_K1, _B = 1.2, 0.75
_STOP_WORDS = """a about also an and any are as at be been being but by could d did do does doing for from had has
    have having he her his how i if in into is it its ll m may me might more most my no not of on or our over re she
    should so some such than that the their them then there they this those to us ve was we were what when where which
    who whom whose why will with you your"""


@dataclass(frozen=True)
class Asked:
    """A question with its graded replies.

    Attributes:
        key: Its id.
        recording: What the chain is replayed with.
        looks: The reply of each step; there may be none for sections.
        prompt_characters: The length of the recorded prompt for sections; None if there was none.
    """

    key: str
    recording: Recording
    looks: Mapping[str, GradedLook]
    prompt_characters: int | None = None

    @cached_property
    def chunks(self) -> list[Document]:
        """The chunks of the recorded prompt for sections, as they were chosen."""
        recorded = self.recording
        return chunks_of(recorded.question, recorded.document, recorded.passages)

    @cached_property
    def whole(self) -> int:
        """The characters of the prompt that the chain sends if it reads the document at once."""
        return ask(self.recording, options_of("long_context")).characters

    @property
    def rebuilt_characters(self) -> int:
        """The length of that prompt, built anew, with the line break at its end."""
        context = "\n\n".join(chunk.page_content for chunk in self.chunks)
        prompt = prompts.SECTIONS.format(context=context, question=self.recording.question, refusal="unanswerable")
        return len(prompt) + 1

    def by_numbers(self, doubt_below: int, sections_below: int) -> tuple[str, ...]:
        """Return the steps that the recorded numbers lead to, whatever the chain does."""
        draft, second = self.looks["rag"], self.looks.get("sections")
        if _sure(draft.prospect) < STOP_BELOW if draft.declined else _sure(draft.confidence) >= doubt_below:
            return ("rag",)
        if second is None:
            return ("rag", "long_context")
        settled = not second.declined and _sure(second.confidence) >= sections_below
        return ("rag", "sections") if settled else ("rag", "sections", "long_context")


def _sure(number: float | None) -> float:
    return 100 if number is None else number


def chunks_of(question: str, text: str, passages: Sequence[str]) -> list[Document]:
    """Return the chunks of a document that a recorded prompt held: the passages and the best others, in its order.

    Others are the best by BM25. The retriever's ranks do not matter: only its five passages had one.
    """
    chunks = _SPLITTER.create_documents([text])
    words = [Counter(_words(chunk.page_content)) for chunk in chunks]
    average = sum(found.total() for found in words) / max(len(chunks), 1)
    scores = [0.0] * len(chunks)
    for word in sorted(set(_words(question))):
        holding = sum(word in found for found in words)
        rarity = math.log(1 + (len(chunks) - holding + 0.5) / (holding + 0.5))
        for number, found in enumerate(words):
            most = _K1 * (1 - _B + _B * found.total() / average)
            scores[number] += rarity * found[word] * (_K1 + 1) / (found[word] + most)
    first = {number for number, chunk in enumerate(chunks) if chunk.page_content in passages}
    others = [number for number, score in enumerate(scores) if score and number not in first]
    others.sort(key=lambda number: -scores[number])
    return [chunks[number] for number in sorted([*first, *others[:OTHERS]])]


def _words(text: str) -> Iterator[str]:
    stop_words = set(_STOP_WORDS.split())
    for word in re.findall(r"\w+", text.lower()):
        if word not in stop_words:
            plural = len(word) > 3 and word.endswith("s") and not word.endswith("ss")
            yield word[:-1] if plural else word


def share_held(spans: Iterable[Span], others: Iterable[Span]) -> tuple[int, int]:
    """Return how many characters some stretches have, and how many of them stand in others, too."""
    wanted = {at for span in spans for at in range(*span)}
    return len(wanted), len(wanted.intersection(at for span in others for at in range(*span)))


def figures_of(asked: Sequence[Asked]) -> Json:
    """Return what sections come to, by their tokens and the bounds, and how much of the recorded prompts they hold."""
    known = [one for one in asked if one.prompt_characters is not None]
    return {
        "recorded": len(known),
        "rebuilt": sum(one.rebuilt_characters == one.prompt_characters for one in known),
        "by_tokens": {str(tokens): {**_held(known, sections=tokens), **_led(asked, tokens)} for tokens in TOKENS},
    }


def table(found: Json) -> Iterator[str]:
    """Yield these figures in words and as a table."""
    yield (
        f"Sections: {found['recorded']} questions have a recorded reply. {found['rebuilt']} of their prompts, built "
        "anew, are as long as recorded."
    )
    for tokens, each in found["by_tokens"].items():
        yield (
            f"\nsections={tokens}: they hold {each['of_recorded']:.1%} of what these prompts held of the document, and "
            f"{each['of_ours']:.1%} of them stand there ({each['characters']:,.0f} characters, "
            f"{each['recorded_characters']:,.0f} in a prompt)."
        )
        if each["skipped"]:
            yield f"Skipped, since the document is short, for {len(each['skipped'])}: {', '.join(each['skipped'])}."
        yield f"{'':24}{'the chain':>27}{'as recorded':>27}"
        yield f"{'doubt below':24}" + f"{'quality':>8}{'tokens':>8}{'documents':>11}" * 2
        for bounds, row in each["bounds"].items():
            yield f"{bounds.strip('()'):24}{_shown(row['chain'])}{_shown(row['recorded'])}"
            for key, (ran, counted) in row["otherwise"].items():
                yield f"    {key}: the chain takes {', '.join(ran)}, the recorded numbers say {', '.join(counted)}"


def _shown(row: Json) -> str:
    return f"{100 * row['quality']:8.1f}{100 * row['token_share']:7.1f}%{row['documents']:11}"


def _led(asked: Sequence[Asked], tokens: int) -> Json:
    """Lead every question through the chain by each pair of bounds."""
    skipped: set[str] = set()
    found = {}
    for bounds in BOUNDS:
        options = options_of("graded_sections", doubt_below=bounds, stop_below=STOP_BELOW, sections=tokens)
        replays = {one.key: ask(one.recording, options) for one in asked}
        counted = {one.key: one.by_numbers(*bounds) for one in asked}
        otherwise = {key: (each.ran, counted[key]) for key, each in replays.items() if each.ran != counted[key]}
        skipped |= {key for key, each in replays.items() if each.skips(counted[key])}
        found[str(bounds)] = {
            "chain": _row(asked, {key: each.ran for key, each in replays.items()}, sent=replays),
            "recorded": _row(asked, counted),
            "otherwise": {key: steps for key, steps in otherwise.items() if key not in skipped},
        }
    return {"skipped": sorted(skipped), "bounds": found}


def _row(asked: Sequence[Asked], ran: Mapping[str, Sequence[str]], sent: Mapping[str, Replay] | None = None) -> Json:
    """Return what some steps come to: by the prompts that were sent, or by the recorded lengths."""
    if sent:
        tokens: float = sum(each.characters for each in sent.values())
        whole: float = sum(one.whole for one in asked)
    else:
        tokens = sum(one.looks[step].tokens for one in asked for step in ran[one.key])
        whole = sum(one.looks["long_context"].tokens for one in asked)
    return {
        "quality": sum(one.looks[ran[one.key][-1]].quality for one in asked) / len(asked),
        "token_share": tokens / whole,
        "documents": sum("long_context" in steps for steps in ran.values()),
    }


def _held(asked: Sequence[Asked], *, sections: int) -> Json:
    """Compare the sections that the chain reads, short document or not, with the prompts that were recorded."""
    options = {**options_of("sections", sections=sections), "max_documents": 0}
    replies = {"rag": "unanswerable", "sections": "An answer.", "long_context": ""}
    theirs = ours = both = 0
    for one in asked:
        read = ask(replace(one.recording, replies=replies), options).read
        held = [(at := chunk.metadata["start_index"], at + len(chunk.page_content)) for chunk in one.chunks]
        size, shared = share_held(held, read)
        theirs, both = theirs + size, both + shared
        ours += sum(end - start for start, end in read)
    return {
        "of_recorded": both / max(theirs, 1),
        "of_ours": both / max(ours, 1),
        "recorded_characters": theirs / len(asked),
        "characters": ours / len(asked),
    }
