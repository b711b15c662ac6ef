"""Questions with reference answers, read from JSONL or made from dicts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator

from selfroute.errors import InputError
from selfroute_workbench.evaluation.looks import OfQuestion
from selfroute_workbench.evaluation.metrics import LETTERS, METRICS
from selfroute_workbench.files import UnreadableFileError, read_file
from selfroute_workbench.kept import rows

_SHORT_LINE, _LONGEST_PATH = 60, 4_096  # characters


@dataclass(frozen=True, slots=True)
class Question(OfQuestion):
    """A question with its reference answers and its metric.

    Attributes:
        dataset: The data set that it belongs to.
        id: Its id, unique in the data set.
        question: The question.
        answers: The reference answers; for a multiple-choice question the right option and its letter. Empty for a
            question without an answer in its document.
        metric: The name of its metric: a key of `metrics.METRICS`.
        choices: The options of a multiple-choice question, in order (A, B, ...).
        document: The text of the document that it is about; None if it does not say. A pipeline reads its own.
        kind: What it needs, such as "steps", for a table; None if it is not said.
        source: What its document is, such as "minutes"; None if it is not said.
    """

    question: str
    answers: tuple[str, ...]
    metric: str = "f1"
    choices: tuple[str, ...] = ()
    document: str | None = None
    kind: str | None = None
    source: str | None = None

    @property
    def document_id(self) -> str:
        """A digest of the document's text; without one it is the question's own, which then counts by itself."""
        text = "\0".join(self.key) if self.document is None else self.document
        return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def load_questions(path: str | Path) -> list[Question]:
    """Read questions from a JSONL file: one JSON object a line, in UTF-8.

    `question` and `answers` are required, the other keys optional; null is the same as no key, and unknown keys are
    ignored:

    * `question`: the question.
    * `answers`: the reference answers, a list of strings or one string; `[]` if the document has no answer. For a
      multiple-choice question, the right option or its letter.
    * `document`: the document's text, more than one short line. Or `document_file`: the path of a file that
      `selfroute ask` reads, such as a PDF or a text in UTF-8, relative to the JSONL. It may be left out if what is
      evaluated has its own documents; intervals are better if it is there.
    * `choices`: the options of a multiple-choice question, four at most.
    * `id`: the question's id; the number of the line by default.
    * `dataset`: the data set that it belongs to; by default the file's name without its suffix.
    * `metric`: by default choice if there are choices, else f1.
    * `kind`: what the question needs, and `source`: what its document is; tables compare by them.

    A text that several questions share is held once.

    Args:
        path: The file.

    Raises:
        InputError: The file cannot be read, has no question, or a line is not as described.
    """
    path = Path(path)
    documents, questions = _Documents(path.parent, takes_lines=False), dict[tuple[str, str], Question]()
    try:
        with path.open("rb") as lines:
            for where, row in rows(lines, str(path)):
                question = _question(row, where, where.rpartition(":")[2], path.stem, documents)
                if question.key in questions:
                    msg = f"{where}: the id {question.id!r} was used before; give each question its own"
                    raise InputError(msg)
                questions[question.key] = question
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}"
        raise InputError(msg) from error
    if not questions:
        msg = f"{path} holds no question; write one JSON object a line"
        raise InputError(msg)
    return list(questions.values())


def question_of(row: Mapping[str, Any], name: str) -> Question:
    """Make a question from a dict with the keys of the JSONL; `dataset` is "questions" by default.

    Args:
        row: The dict. A `document_file` is relative to the working directory.
        name: Its id, if the dict has none.

    Raises:
        InputError: It is not as `load_questions` describes.
    """
    if not isinstance(row, Mapping):
        msg = f"question {name} is a {type(row).__name__}: write {{'question': ..., 'answers': [...]}}, in a list"
        raise InputError(msg)
    return _question(row, f"question {name}", name, "questions", _Documents(Path()))


def option_and_letter(answers: Sequence[str], choices: Sequence[str]) -> tuple[str, str]:
    """Return the right option and its letter, which the metric choice needs, from either or both.

    Raises:
        ValueError: They are not one of the choices.
    """
    pairs = list(zip(choices, LETTERS, strict=False))
    if tuple(answers) in pairs:  # first, as the text of an option may be another's letter
        return answers[0], answers[1]
    by_name = {letter: (option, letter) for option, letter in pairs} | {pair[0]: pair for pair in reversed(pairs)}
    found = {by_name.get(answer) for answer in answers}
    pair = found.pop() if len(found) == 1 else None
    if pair is None:
        msg = f"answers must be one of the choices or its letter ({', '.join(LETTERS[: len(pairs)])})"
        raise ValueError(msg)
    return pair


def choice_lines(choices: Sequence[str]) -> str:
    """Write the options of a multiple-choice question, each on a line after its letter."""
    return "\n".join(f"{letter}. {option}" for letter, option in zip(LETTERS, choices, strict=False))


def _not_blank(text: str) -> str:
    if not text.strip():
        msg = "it is empty"
        raise ValueError(msg)
    return text


_Text = Annotated[str, AfterValidator(_not_blank)]


class _Row(BaseModel):
    """A line of the file."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    question: _Text
    answers: tuple[str, ...]
    choices: Annotated[tuple[str, ...], Field(max_length=len(LETTERS))] = ()
    id: _Text | None = None
    dataset: _Text | None = None
    metric: _Text | None = None
    kind: _Text | None = None
    source: _Text | None = None
    document: _Text | None = None
    document_file: _Text | None = None

    @field_validator("metric")
    @classmethod
    def _known(cls, name: str | None) -> str | None:
        if name and name not in METRICS:
            msg = f"{name!r} is not known; write one of {', '.join(METRICS)}"
            raise ValueError(msg)
        return name

    @field_validator("answers", "choices", mode="before")
    @classmethod
    def _listed(cls, given: Any) -> Any:
        return [given] if isinstance(given, str) else given


class _Documents:
    """The texts of a file's documents, each held once."""

    def __init__(self, folder: Path, *, takes_lines: bool = True) -> None:
        self._folder, self._takes_lines = folder, takes_lines
        self._files: dict[str, str] = {}
        self._texts: dict[str, str] = {}

    def of(self, row: _Row) -> str | None:
        text, name = row.document or "", row.document_file
        if text and name:
            msg = "document and document_file are both given; write one of them"
            raise ValueError(msg)
        if text and not self._takes_lines and _is_no_document(text, self._folder):
            msg = (
                f"document is the text itself, and {text.strip()!r} is a file's name or one short line: write "
                "document_file for the path of a file"
            )
            raise ValueError(msg)
        if name and name not in self._files:
            try:
                self._files[name] = read_file(self._folder / name).text
            except UnreadableFileError as error:
                msg = f"document_file {name!r}: {error.problem}"
                raise ValueError(msg) from error
        text = self._files[name] if name else text
        return self._texts.setdefault(text, text) if text else None


def _is_no_document(text: str, folder: Path) -> bool:
    """Return whether a document's text names a file, or is one short line, as a path would be."""
    line = text.strip()
    if "\n" in line or len(line) > _LONGEST_PATH:
        return False
    try:
        return len(line) < _SHORT_LINE or (folder / line).exists()
    except (OSError, ValueError):  # what no path can be
        return False


def _question(given: Mapping[str, Any], where: str, name: str, dataset: str, documents: _Documents) -> Question:
    try:
        row = _Row.model_validate({key: value for key, value in given.items() if value is not None})
        answers, metric = row.answers, row.metric or ("choice" if row.choices else "f1")
        if metric == "choice" and answers:
            answers = option_and_letter(answers, row.choices)
        return Question(
            row.dataset or dataset,
            row.id or name,
            row.question,
            answers,
            metric,
            row.choices,
            documents.of(row),
            row.kind,
            row.source,
        )
    except ValidationError as error:
        wrong = error.errors()[0]
        msg = f"{where}: {'.'.join(map(str, wrong['loc']))}: {wrong['msg']}"
        raise InputError(msg) from error
    except ValueError as error:
        msg = f"{where}: {error}"
        raise InputError(msg) from error
