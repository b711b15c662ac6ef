"""What one declined question holds in memory, in lengths of the document that it reads."""

from __future__ import annotations

import tracemalloc

import pytest

from hosts_documents import cut, house

LONG = "\n\n".join(f"Paragraph {number} is about the number {number}. " + "It rained. " * 40 for number in range(900))
MOST = 3 + 1  # the scripted model keeps its prompts


@pytest.mark.parametrize("sections", [None, 2_000])
@pytest.mark.parametrize("kind", ["langchain chroma", "llamaindex chroma"])
async def test_memory_of_a_declined_question(kind: str, sections: int | None) -> None:
    model = {"looks": [("unanswerable",)] * 2}
    asked = house(kind, cut(LONG, "report", size=900)).built(sections=sections, model=model)
    await asked.ask()  # what is kept for the next question is not counted: the text, and where its words stand
    tracemalloc.start()
    answered = await asked.ask()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert answered.route == "long_context"
    assert 0.9 < most / len(LONG) < MOST
