"""Both hosts: text that cannot be sent as it is, the same text twice, and documents that are gone."""

from __future__ import annotations

import pytest

from both_parts import Text, everywhere, pipeline, store_of, stored
from scenarios import FINAL, FOUND
from selfroute.errors import DocumentNotFoundError

BEGINNING = "Read the following text"  # of a prompt with whole documents
HALF = "The pump \ud83d was repaired, \udc00 and \ud83d\ude00 nobody came."
SENT = "The pump � was repaired, � and \U0001f600 nobody came."


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


ONE, TWO, THREE = "The pump was repaired.", "Tea was served.", "Nobody spoke of the crane."


@everywhere
async def test_a_passage_that_repeats_another_gives_its_place_to_the_next(where: str) -> None:
    """As in a store that was indexed twice."""
    passages = [Text(text, name, 30 * at) for at, text in enumerate((ONE, TWO, THREE)) for name in ("a", "b")]
    documents = [Text(f"{ONE} {TWO} {THREE} Mr Lin took the chair.", "a")]
    one = pipeline(where, passages=passages, documents=documents, draft_passages=2, final=FINAL, marker=BEGINNING)
    found = await one.ask()
    assert all(found.prompts[0].count(text) == 1 for text in (ONE, TWO))
    assert THREE not in found.prompts[0]
    assert found.retrieved >= 3


@everywhere
@pytest.mark.parametrize("most", [2, None])
async def test_documents_with_the_same_text_are_one(most: int | None, where: str) -> None:
    whole = f"{ONE} Mr Lin took the chair, and the board met until nine in the evening."
    chunks = [Text(text, name, at) for name in ("a", "b") for text, at in ((ONE, 0), (whole[len(ONE) :], len(ONE)))]
    chunks.append(Text(f"{TWO} {THREE} Then it rose.", "c", 0))
    documents = stored(where, store_of(where, chunks), open_to_all=True)
    passages = [Text(ONE, "a", 0), Text(ONE, "b", 0), Text(TWO, "c", 0)]
    options = {"sections": None, "final": FINAL, "marker": BEGINNING, "max_documents": most}
    found = await pipeline(where, passages=passages, documents=documents, **options).ask()
    assert (found.answer, sorted(found.names)) == (FOUND, ["a", "c"])
