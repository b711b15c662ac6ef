"""Both hosts: documents that cannot be sent as they are, and documents that are gone."""

from __future__ import annotations

import pytest

from both_parts import Text, everywhere, pipeline, store_of, stored
from scenarios import FINAL, FOUND
from selfroute.errors import DocumentNotFoundError

BEGINNING = "Read the following text"  # of a prompt with whole documents
HALF = "The pump \ud83d was mended, \udc00 and \ud83d\ude00 nobody came."
SENT = "The pump � was mended, � and \U0001f600 nobody came."


@everywhere
async def test_halves_of_surrogate_pairs_are_sent_as_such_marks(where: str) -> None:
    documents = [Text(f"{HALF} {HALF} Mr Lin took the chair.", "minutes")]
    one = pipeline(where, passages=[Text(HALF, "minutes")], documents=documents, final=FINAL, marker=BEGINNING)
    found = await one.ask()
    assert found.answer == FOUND
    for prompt in found.prompts:
        prompt.encode()
        assert SENT in prompt


@everywhere
async def test_a_document_that_is_gone_costs_no_other(where: str) -> None:
    there = Text("Mr Lin took the chair, and the board met until nine in the evening.", "minutes", 0)
    rest = Text(" Then it rose.", "minutes", len(there.text))
    documents = stored(where, store_of(where, [there, rest]), open_to_all=True)
    gone = Text("The accounts were read.", "accounts", 0)
    found = await pipeline(
        where, passages=[gone, there], documents=documents, final=FINAL, sections=None, marker=BEGINNING
    ).ask()
    assert (found.answer, found.names) == (FOUND, ["minutes"])
    with pytest.raises(DocumentNotFoundError, match="accounts"):
        await pipeline(where, passages=[gone], documents=documents, final=FINAL, sections=None, marker=BEGINNING).ask()
