"""What the laws over all stores ask of a store: chunks go in, and documents are read behind a retriever."""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

QUESTION = "Who chaired the meeting?"
ANSWER = "Ms Okafor."


@dataclass(frozen=True)
class Piece:
    """A chunk before it is indexed; `start` is its offset, None where the splitter noted none."""

    text: str
    source: Any = "minutes"
    tenant: str = "north"
    start: int | None = None


@dataclass(frozen=True)
class Read:
    """A document as it was read, and the label that says how."""

    text: str
    label: Mapping[str, Any]


@dataclass(frozen=True)
class Routed:
    """How a question ended, and all that the model was asked with."""

    route: str
    answer: str
    prompt: str


class Case(ABC):
    """A store of one kind in a folder of its own, with what its users would put around it.

    Attributes:
        name: The framework and the store.
        ordered: Whether it lists chunks in the order in which they were added.
        typed: Whether numbers can name documents.
        copied: Whether what reads it can be copied and pickled: it holds no connection.
        needs: The modules that it takes.
        heavy: Whether these are large, so that only the matrix installs them.
        ignored: How messages of warnings begin that its packages give as they are used.
        many: The number of chunks of a long document, more than the store is asked for at once.
        not_filters: Values that are filters of other stores.
    """

    name: str
    ordered: bool = True
    typed: bool = True
    copied: bool = False
    needs: Sequence[str] = ()
    heavy: bool = False
    ignored: Sequence[str] = ()
    many: int = 6_000
    not_filters: Sequence[Any] = ()

    def __init__(self, folder: Path) -> None:
        """Open an empty store."""
        self.folder = folder

    @abstractmethod
    def add(self, pieces: Iterable[Piece]) -> list[str]:
        """Index chunks and return their ids in the store."""

    @abstractmethod
    def delete(self, ids: list[str]) -> None:
        """Delete chunks by id."""

    @abstractmethod
    def filters(self, tenant: str) -> Mapping[str, Any]:
        """Return filters of the store's own types that let one tenant's chunks through, by name, if any do."""

    @abstractmethod
    def reader(self, *, within: Any = None, declared: Any = None) -> Any:
        """Return an object that reads the document behind a retrieved piece.

        Its `read(piece)` returns a `Read`, `listed(piece)` the number of its chunks; `forget()` empties its cache.

        Args:
            within: The retriever's filter.
            declared: The filter that `StoredDocuments` is given.
        """

    @abstractmethod
    def routed(self, mode: str, *, within: Any = None) -> Routed:
        """Ask a question by the README's two lines, sync or async, with a model that declines the passages."""

    @abstractmethod
    def dump(self) -> int:
        """Read all texts and metadata by the store's own means; return how many."""

    def close(self) -> None:  # noqa: B027 - few have anything to close
        """Let go of the store."""


def missing(*kinds: type[Case]) -> list[str]:
    """Return the modules of some kinds that are not installed, without importing those that are: some are large."""
    return [module for kind in kinds for module in kind.needs if not _is_there(module)]


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package that it would be in
        return False


def text_of(pieces: Iterable[Piece]) -> str:
    """The text that pieces were cut from."""
    return "".join(piece.text for piece in pieces)


def cut(text: str, *, size: int = 40, source: Any = "minutes", tenant: str = "north") -> list[Piece]:
    """Cut a text into pieces with offsets, without overlap."""
    return [Piece(text[at : at + size], source, tenant, at) for at in range(0, len(text), size)]


def numbered(owner: str, lines: int = 6) -> str:
    """A text that names its owner in each line, no two of which are alike."""
    return "".join(f"Line {n} of {owner} says {n * n + 7}.\n" for n in range(lines))
