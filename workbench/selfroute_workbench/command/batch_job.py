"""Keeps a batch job in its folder.

`job.json`: the documents, the models and the other options. `state.jsonl`: a row for each question: its latest request,
its draft, its answer or its error. `results.jsonl`: the results that were imported. `answers.jsonl`: the answers.
`requests-1.jsonl` and so on: the files for the provider.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from selfroute.errors import ConfigurationError, InputError
from selfroute.usage.rows import entry_of
from selfroute_workbench.command.batch_files import Json, replacing
from selfroute_workbench.command.batch_results import Result, id_of
from selfroute_workbench.command.texts import Text
from selfroute_workbench.kept import make, rows

T = TypeVar("T")

_IMPORT_AGAIN = "delete it, and import all results of the provider again"


@dataclass(slots=True)
class Item:
    """A question of the job.

    Attributes:
        question: What the user's file says of it: the key `question`, and others.
        request: The id of its latest request; None before the first, and while the next one is to be written.
        retrieved: The ids of the passages that were retrieved for it, until it is answered.
        row: What the first step returned; None before its draft is here.
        answer: The answer; None before it is here.
        error: What went wrong with the latest request; None if nothing did.
    """

    question: Json
    request: str | None = None
    retrieved: list[str] = field(default_factory=list)
    row: Json | None = None
    answer: Json | None = None
    error: str | None = None

    def check(self) -> None:
        """Check what its types do not say; raises ValueError if the question is missing or the answer is not a row."""
        if not isinstance(self.question.get("question"), str) or (self.row is not None and "sources" not in self.row):
            msg = "a question or a draft is missing"
            raise ValueError(msg)
        if self.answer is not None:
            entry_of(self.answer)

    @property
    def status(self) -> Literal["answered", "failed", "waiting", "next"]:
        """Whether it is answered, failed, waits for a result, or is to be asked next."""
        if self.answer is not None:
            return "answered"
        if self.error is not None:
            return "failed"
        return "waiting" if self.request else "next"

    @property
    def outcome(self) -> Json | None:
        """The answer, or the error in its place; None while there is neither."""
        return self.answer or (None if self.error is None else {"error": self.error})


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a job was begun with: the digest of each of its documents, and the options of `selfroute batch export`."""

    files: Mapping[str, str]
    model: str
    long_context_model: str | None = None
    k: int = 5
    store: str | None = None
    embeddings: str | None = None
    graded: bool = False
    sections: int | Sequence[int] | None = None

    def check_texts(self, texts: Iterable[Text]) -> None:
        """Check that the documents are those that the job was begun with.

        Raises:
            ConfigurationError: One has changed.
        """
        for text in texts:
            if self.files[text.source] != text.key:
                msg = f"{text.source} has changed since the job began: put it back, or begin another job with --job"
                raise ConfigurationError(msg)


class Job:
    """A job in its folder.

    Attributes:
        folder: The folder.
        setup: What it was begun with.
        items: The questions.
        answers: The file of the answers.
        results: The results, by the digest of their request; of several attempts the latest.
    """

    def __init__(self, folder: Path, setup: Setup, items: Sequence[Item]) -> None:
        self.folder, self.setup, self.items = folder, setup, items
        self.answers = folder / "answers.jsonl"
        self._by_id: dict[str, Result] = {}
        self.results: dict[str, Result] = {}
        for result in _read(folder / "results.jsonl", Result, lambda one: one.attempt, todo=_IMPORT_AGAIN):
            self._keep(result)

    @classmethod
    def begin(cls, folder: Path, setup: Setup, questions: Iterable[Json]) -> Job:
        """Begin a job; the first file that is written makes its folder.

        Raises:
            ConfigurationError: The folder holds a job already.
        """
        if (folder / "job.json").exists():
            msg = f"{folder} holds a job: continue it with --job {folder} alone, or name another folder"
            raise ConfigurationError(msg)
        return cls(folder, setup, [Item(question) for question in questions])

    @classmethod
    def open(cls, folder: Path) -> Job:
        """Open a job.

        Raises:
            ConfigurationError: The folder holds none, or one of another version.
            InputError: One of its files is damaged; the message names it, and what to delete.
        """
        if not (folder / "job.json").exists():
            msg = (
                f"{folder} holds no job: begin one with "
                "selfroute batch export FILE... --questions questions.jsonl --model openai:gpt-4o-mini"
            )
            raise ConfigurationError(msg)
        todo = f"put a copy of it back, or delete {folder} and begin the job again"
        try:
            setup = next(_read(folder / "job.json", Setup, lambda _: None, todo=todo), None)
            if setup is None:
                msg = f"{folder / 'job.json'} is empty; {todo}"
                raise InputError(msg)
            return cls(folder, setup, list(_read(folder / "state.jsonl", Item, Item.check, todo=todo)))
        except TypeError as error:
            msg = f"{folder} holds the job of another version of selfroute: finish it with that version"
            raise ConfigurationError(msg) from error

    def save(self) -> None:
        """Write the state and the answers; a question that failed has an `error` instead."""
        _write(self.folder / "state.jsonl", map(asdict, self.items))
        _write(self.answers, ({**item.question, **item.outcome} for item in self.items if item.outcome))
        _write(self.folder / "job.json", [asdict(self.setup)])

    def add(self, results: Iterable[Result]) -> tuple[set[str], dict[str, int]]:
        """Keep results.

        Returns:
            The ids of those that are new; and the numbers of `replies` and `errors` among them, of those `known` before
            and of those of `other_jobs`.
        """
        asked = {item.request for item in self.items} | self._by_id.keys()
        new, counts = set[str](), dict.fromkeys(("replies", "errors", "known", "other_jobs"), 0)
        for result in results:
            earlier = self._by_id.get(result.id)
            if result.id not in asked:
                counts["other_jobs"] += 1
            elif earlier and (earlier.replied or not result.replied):
                counts["known"] += 1
            else:
                self._keep(result)
                new.add(result.id)
                counts["replies" if result.replied else "errors"] += 1
        _write(self.folder / "results.jsonl", map(asdict, self._by_id.values()))
        return new, counts

    def can_judge(self, item: Item) -> bool:
        """Return whether the result that a question waits for is here."""
        return item.status == "waiting" and item.request in self._by_id

    def next_id(self, digest: str) -> str:
        """Return the id of a request: the digest, and how often it will have been asked."""
        earlier = self.results.get(digest)
        return id_of(digest, earlier.attempt + 1 if earlier else 1)

    def _keep(self, result: Result) -> None:
        self._by_id[result.id] = result
        latest = self.results.get(result.digest)
        if latest is None or result.attempt >= latest.attempt:
            self.results[result.digest] = result


def read_questions(path: Path) -> list[Json]:
    """Read the questions of a file: the lines of a text, or a JSONL with the key `question`; each is taken once.

    Raises:
        InputError: It cannot be read, or a line holds no question.
    """
    try:
        lines = path.read_bytes().splitlines()
        if path.suffix == ".jsonl":
            found = [_question(row, where) for where, row in rows(lines, str(path))]
        else:
            found = [{"question": text} for line in lines if (text := line.decode("utf-8-sig").strip())]
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}"
        raise InputError(msg) from error
    except UnicodeDecodeError as error:
        msg = f"{path} is not UTF-8; save the file in that encoding"
        raise InputError(msg) from error
    if not found:
        msg = f"{path} holds no question"
        raise InputError(msg)
    return [*{json.dumps([row.get("id"), row["question"]]): row for row in found}.values()]


def _question(row: Json, where: str) -> Json:
    if not isinstance(row.get("question"), str) or not row["question"].strip():
        msg = f"{where}: there is no question in {json.dumps(row)[:80]}"
        raise InputError(msg)
    row.pop("error", None)  # of an earlier run
    return row


def _write(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    with replacing(path) as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def _read(path: Path, kind: type[T], check: Callable[[T], object], *, todo: str) -> Iterator[T]:
    """Read objects of a file that we wrote; none if there is no such file.

    Raises:
        InputError: A line is damaged, or `check` raises a ValueError: it looks at what the types do not say.
        TypeError: Another version wrote it.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        for where, row in rows(file, str(path), todo=todo):
            made = make(kind, row, where, todo=todo)
            try:
                check(made)
            except ValueError as error:
                msg = f"{where} is damaged ({error}); {todo}"
                raise InputError(msg) from error
            yield made
