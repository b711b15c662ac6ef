"""The laws of `benchmarks/replayed_chain.py` and `replayed_sections.py`: what the chain makes of recorded replies."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[3] / "benchmarks"))
from replayed_chain import Recording, ask, options_of, with_numbers
from replayed_sections import OTHERS, chunks_of, share_held

DAYS = [f"On day {day} the crew counted sails near island{day}. " * 20 for day in range(40)]
TEXT = "\n\n".join(DAYS)
QUESTION = "What happened near island7?"
DECLINE = "80 0\nunanswerable"


def recording(*, text: str = TEXT, **replies: str) -> Recording:
    return Recording(QUESTION, [DAYS[3][:400]], text, {"rag": DECLINE, "long_context": "All of it.", **replies})


@pytest.mark.parametrize(
    ("replies", "text", "ran"),
    [
        ({"rag": "80 75\nSails."}, TEXT, ("rag",)),
        ({"rag": "5 0\nunanswerable"}, TEXT, ("rag",)),
        ({}, TEXT, ("rag", "long_context")),
        ({"sections": "65\nSails."}, TEXT, ("rag", "sections")),
        ({"sections": "55\nSails."}, TEXT, ("rag", "sections", "long_context")),
        ({"sections": "unanswerable"}, TEXT, ("rag", "sections", "long_context")),
        ({"sections": "65\nSails."}, TEXT[:9_000], ("rag", "long_context")),
    ],
    ids=["sure", "stopped", "not recorded", "settled", "in doubt", "declined", "a short document"],
)
def test_the_chain_takes_the_steps_that_the_numbers_say(
    replies: dict[str, str], text: str, ran: tuple[str, ...]
) -> None:
    options = options_of("graded_sections", doubt_below=(70, 60), stop_below=20)
    found = ask(recording(text=text, **replies), options)
    assert (found.ran, found.shown) == (ran, ran[-1])


def test_characters_are_those_of_all_prompts_that_were_sent() -> None:
    whole = ask(recording(), options_of("long_context")).characters
    draft = ask(recording(), options_of("rag")).characters
    assert len(TEXT) < whole < len(TEXT) + 1_000
    assert ask(recording(rag="unanswerable"), options_of("self_route")).characters == draft + whole


def test_what_an_answer_from_sections_has_read_is_known_by_its_place() -> None:
    found = ask(recording(rag="unanswerable", sections="Sails."), options_of("sections", sections=1_000))
    assert any("island7." in TEXT[start:end] for start, end in found.read)
    assert sum(end - start for start, end in found.read) <= 4_000


def test_a_prompt_built_anew_holds_the_passages_and_the_best_other_chunks_in_order() -> None:
    (first,) = chunks_of("What about island7?", TEXT, [])[:1]
    passage = chunks_of("island39", TEXT, [])[-1].page_content
    held = chunks_of("What about island7?", TEXT, [passage])
    assert "island7." in first.page_content
    assert (held[0].page_content, held[-1].page_content) == (first.page_content, passage)
    assert len(held) <= 3, "chunks without a word of the question are left out"
    many = chunks_of("the crew's sails near island7", TEXT, [passage])
    assert first in many
    assert len(many) == OTHERS + 1
    starts = [chunk.metadata["start_index"] for chunk in many]
    assert starts == sorted(starts)
    assert all(TEXT.startswith(chunk.page_content, start) for chunk, start in zip(many, starts, strict=True))


def test_a_character_that_two_stretches_hold_counts_once() -> None:
    assert share_held([(0, 10), (5, 20)], [(8, 12), (10, 15), (30, 40)]) == (20, 7)


def test_numbers_stand_before_a_reply_that_was_asked_for_them() -> None:
    assert with_numbers("green", 80, 40.4) == "80 40\ngreen"
    assert with_numbers("unanswerable", 80, None) == "80 0\nunanswerable"
    assert with_numbers("unanswerable", None) == "unanswerable"
