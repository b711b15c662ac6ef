"""Rebuild the text that was found, of those that stand in a store under one name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from selfroute.documents.chunks import Chunk
from selfroute.documents.offsets import ALWAYS
from selfroute.documents.rebuild import RebuiltDocument, rebuild
from selfroute.documents.versions import one_text
from selfroute.documents.window import ENDS_OF_CONTEXTS


def rebuild_found(chunks: Sequence[Chunk], found: Sequence[str], *, ordered: bool = True) -> RebuiltDocument:
    """Rebuild the text that was found, of those that stand in the store under one name.

    Args:
        chunks: All chunks, in the order in which the store returns them.
        found: The texts of the passages that were retrieved.
        ordered: As in `rebuild`.

    Raises:
        UnknownOrderError: As in `rebuild`.
    """
    if bare := _without_contexts(chunks, found, ordered=ordered):
        return bare
    version = one_text(chunks, found, ordered=ordered)
    document = rebuild([chunks[at] for at in version.kept], ordered=ordered or version.doubtful)
    return replace(document, texts=version.texts, doubtful=version.doubtful)


def _without_contexts(chunks: Sequence[Chunk], found: Sequence[str], *, ordered: bool) -> RebuiltDocument | None:
    """Rebuild a document without the sentences on its context that a model wrote before each chunk; None without any.

    Contextual retrieval puts them into a paragraph, a line or a sentence of their own. That this is what the chunks
    begin with shows if the rest of each, or of those of one version, joins without a hole.
    """
    if len(chunks) < 3 or any(chunk.start is None for chunk in chunks) or not _contradict(chunks):  # noqa: PLR2004
        return None
    for end in ENDS_OF_CONTEXTS:
        bodies = [chunk.text.partition(end)[2].strip() for chunk in chunks]
        if not all(bodies):
            continue
        bare = [replace(chunk, text=body, place=()) for chunk, body in zip(chunks, bodies, strict=True)]
        version = one_text(bare, found, ordered=ordered)
        kept = sorted(dict.fromkeys(bare[at] for at in version.kept), key=lambda chunk: chunk.start or 0)
        ends = accumulate(((chunk.start or 0) + len(chunk.text) for chunk in kept), max)
        has_hole = any((chunk.start or 0) - end > ALWAYS for end, chunk in zip(ends, kept[1:], strict=False))
        if not (has_hole or _contradict(kept) or version.doubtful):
            return replace(rebuild(kept), texts=version.texts)
    return None


def _contradict(chunks: Sequence[Chunk]) -> bool:
    """Return whether two neighbours, by their offsets, say different things of one stretch."""
    listed = sorted((chunk.start or 0, chunk.text) for chunk in chunks)
    pairs = ((text[behind - start :], other) for (start, text), (behind, other) in pairwise(listed))
    return any(not (left.startswith(right) or right.startswith(left)) for left, right in pairs if left)
