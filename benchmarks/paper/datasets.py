"""Loads the paper's data sets, from the Hub or a folder, as questions with their own metric and prompt."""

from __future__ import annotations

import random
import re
import string
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from selfroute.error_text import first_line
from selfroute.errors import ConfigurationError, InputError
from selfroute_workbench.demo import corpus
from selfroute_workbench.evaluation.metrics import LETTERS
from selfroute_workbench.evaluation.questions import Question, load_questions, option_and_letter
from selfroute_workbench.kept import rows

from . import metrics  # noqa: F401 - it adds those of the data sets

Benchmark = Literal["LongBench", "InfiniteBench"]
DEMO = corpus.NAME
_REPOSITORIES: Mapping[Benchmark, str] = {
    "LongBench": "THUDM/LongBench",
    "InfiniteBench": "xinrongzhang2022/InfiniteBench",
}
_ARCHIVE = "data.zip"  # holds all files of LongBench
SPECIAL_TOKEN = "passkey-special-token"  # noqa: S105 - the name of a data set
LARGER = "passkey-larger"

_KEY = re.compile(r"The pass key is (?P<key>[0-9]+)\. Remember it\. (?P=key) is the pass key\.")


@dataclass(frozen=True, slots=True)
class Dataset:
    """A data set of the paper.

    Attributes:
        name: Its name here.
        benchmark: The benchmark that it is a part of.
        file: Its file in the benchmark.
        size: How many questions it has (Table 6).
        metric: The name of its metric: a key of `metrics.METRICS`.
        source: What its documents are, by the sequel's Table 2 where it has the data set.
    """

    name: str
    benchmark: Benchmark
    file: str
    size: int
    metric: str
    source: str | None = None

    @property
    def hub_file(self) -> str:
        """The file on the Hub that holds it."""
        return _ARCHIVE if self.benchmark == "LongBench" else self.file

    @property
    def url(self) -> str:
        """The address where a person can download that file."""
        return f"https://huggingface.co/datasets/{_REPOSITORIES[self.benchmark]}/resolve/main/{self.hub_file}"


DATASETS: Mapping[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        Dataset("narrativeqa", "LongBench", "narrativeqa.jsonl", 200, "f1", "books, films"),
        Dataset("qasper", "LongBench", "qasper.jsonl", 200, "f1", "papers"),
        Dataset("multifieldqa", "LongBench", "multifieldqa_en.jsonl", 150, "f1", "papers, reports"),
        Dataset("hotpotqa", "LongBench", "hotpotqa.jsonl", 200, "f1", "Wikipedia"),
        Dataset("2wikimultihopqa", "LongBench", "2wikimqa.jsonl", 200, "f1", "Wikipedia"),
        Dataset("musique", "LongBench", "musique.jsonl", 200, "f1", "Wikipedia"),
        Dataset("qmsum", "LongBench", "qmsum.jsonl", 200, "rouge_l", "meetings"),
        Dataset("en.qa", "InfiniteBench", "longbook_qa_eng.jsonl", 351, "en_qa_f1", "novels"),
        Dataset("en.mc", "InfiniteBench", "longbook_choice_eng.jsonl", 229, "choice", "novels"),
        Dataset("passkey", "InfiniteBench", "passkey.jsonl", 590, "passkey"),
        Dataset(SPECIAL_TOKEN, "InfiniteBench", "passkey.jsonl", 590, "passkey"),
        Dataset(LARGER, "InfiniteBench", "passkey.jsonl", 590, "first_or_second"),
    )
}
"""By name: the nine of Table 1 in its order, then PassKey and its two variants (Table 3)."""


def resolve(argument: str, folder: Path | None = None) -> list[Question]:
    """Load questions by name: a data set of the paper, as `load` does; `demo`; or the path of a JSONL file.

    Raises:
        ConfigurationError: There is no data set and no file of that name; else as for `load`.
    """
    if argument == DEMO:
        return _demo()
    if argument in DATASETS:
        return load(argument, folder=folder)
    if Path(argument).is_file():
        return load_questions(argument)
    msg = f"{argument!r} is neither a data set nor a file; name a JSONL file or one of {DEMO}, {', '.join(DATASETS)}"
    raise ConfigurationError(msg)


def load(name: str, *, folder: Path | None = None) -> list[Question]:
    """Load a data set of the paper; a warning says if a file has fewer or more questions than the paper's.

    Args:
        name: A key of `DATASETS`.
        folder: A folder with the benchmark's .jsonl files or LongBench's data.zip, in it or in its folder `data`; by
            default they are downloaded from the Hub, once.

    Raises:
        ConfigurationError: There is no such data set, the folder does not hold it, or it cannot be downloaded.
        InputError: A file is not as it should be.
    """
    if name not in DATASETS:
        msg = f"there is no data set {name!r}; the names are {', '.join(DATASETS)}"
        raise ConfigurationError(msg)
    dataset = DATASETS[name]
    with _opened(dataset, folder) as (lines, file):
        questions = list(_questions(dataset, rows(lines, file)))
    if len(questions) != dataset.size:
        msg = f"{file} is not all of {name}: it has {len(questions)} questions where the paper's has {dataset.size}"
        warnings.warn(msg, stacklevel=2)
    return questions


def _questions(dataset: Dataset, records: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterator[Question]:
    """Make questions from a benchmark's records; a text that several share is held once."""
    vary = {SPECIAL_TOKEN: special_token, LARGER: larger}.get(dataset.name)
    texts: dict[str, str] = {}
    ids: set[str] = set()
    for where, record in records:
        try:
            question = _question(record, dataset)
            question = vary(question) if vary else question
        except (KeyError, TypeError, ValueError) as error:
            why = f"it has no {error}" if isinstance(error, KeyError) else error
            msg = f"{where} is not a record of {dataset.benchmark}'s {dataset.file}: {why}"
            raise InputError(msg) from error
        name = question.id if question.id not in ids else f"{question.id} ({where.rpartition(':')[2]})"
        document = question.document or ""
        ids.add(name)
        yield replace(question, id=name, document=texts.setdefault(document, document))


def _question(record: Mapping[str, Any], dataset: Dataset) -> Question:
    of_longbench = dataset.benchmark == "LongBench"
    answers = record["answers" if of_longbench else "answer"]
    answers = (answers,) if isinstance(answers, str) else tuple(answers)
    choices = tuple(record["options"]) if dataset.metric == "choice" else ()
    texts = (record["input"], record["context"], *answers, *choices)
    if not answers or not all(isinstance(text, str) for text in texts):
        msg = "its input, context and answers must be texts"
        raise TypeError(msg)
    if choices and answers[1:] not in [(letter,) for letter in LETTERS]:  # as InfiniteBench's program does
        answers = option_and_letter(answers, choices)
    return Question(
        dataset=dataset.name,
        id=str(record["_id" if of_longbench else "id"]),
        question=record["input"],
        answers=answers,
        metric=dataset.metric,
        choices=choices,
        document=record["context"],
        source=dataset.source,
    )


@contextmanager
def _opened(dataset: Dataset, folder: Path | None) -> Iterator[tuple[Iterable[bytes], str]]:
    """Open a data set's file: yield its lines, and its name for error messages."""
    path = _downloaded(dataset) if folder is None else _found(dataset, folder)
    if path.suffix != ".zip":
        with path.open("rb") as lines:
            yield lines, str(path)
        return
    try:
        with zipfile.ZipFile(path) as archive:
            member = next((name for name in archive.namelist() if name.rpartition("/")[2] == dataset.file), None)
            if member is None:
                msg = f"{path} holds no {dataset.file}; is it {dataset.url}?"
                raise InputError(msg)
            with archive.open(member) as lines:
                yield lines, f"{path}/{member}"
    except (zipfile.BadZipFile, EOFError, zlib.error) as error:
        msg = f"{path} is a broken archive ({error}); download it again from {dataset.url}"
        raise InputError(msg) from error


def _found(dataset: Dataset, folder: Path) -> Path:
    names = [dataset.file] if dataset.benchmark == "InfiniteBench" else [dataset.file, _ARCHIVE]
    paths = [place / name for place in (folder, folder / "data") for name in names]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        msg = f"{folder} holds no {' or '.join(names)} for {dataset.name}; put {dataset.url} there"
        raise ConfigurationError(msg)
    return path


def _file_of(repository: str, file: str) -> Path:
    from huggingface_hub import hf_hub_download  # noqa: PLC0415 - heavy

    try:
        return Path(hf_hub_download(repository, file, repo_type="dataset", local_files_only=True))
    except OSError:  # not downloaded yet
        return Path(hf_hub_download(repository, file, repo_type="dataset"))


def _downloaded(dataset: Dataset) -> Path:
    repository, file = _REPOSITORIES[dataset.benchmark], dataset.hub_file
    try:
        return _file_of(repository, file)
    except ImportError as error:
        msg = "data sets from the Hub need huggingface_hub: pip install huggingface_hub, or name a --data-folder"
        raise ConfigurationError(msg) from error
    except OSError as error:
        msg = (
            f"{file} of {repository}, which {dataset.name} is read from, could not be downloaded from the Hub "
            f"({first_line(error).rstrip('.')}); put {dataset.url} into a folder and name it with --data-folder"
        )
        raise ConfigurationError(msg) from error


def _demo() -> list[Question]:
    """Load the questions that come with the package; "unanswerable" is right where the text does not say."""
    texts = corpus.load_documents()
    return [
        Question(DEMO, one.id, one.question, one.answers, document=texts[one.document], kind=one.kind, source="minutes")
        for one in corpus.load_questions()
    ]


def special_token(question: Question) -> Question:
    """Return the question in words that are not in the text (variant 1)."""
    return replace(question, dataset=SPECIAL_TOKEN, question="What is the special token hidden inside the texts?")


def larger(question: Question) -> Question:
    """Hide a second key in another line of the text, and ask which one is larger (variant 2); InputError without a key.

    The paper gives no details. Here the second key has as many digits and the same sentences, on a new line that is not
    next to the first one's. The question's id seeds the draw of key and line.
    """
    hidden = _KEY.search(question.document or "")
    if hidden is None:
        msg = f"{question.dataset} {question.id}: the document has no 'The pass key is ...'; is it InfiniteBench's?"
        raise InputError(msg)
    draw = random.Random(question.id)  # noqa: S311 - not a secret, and the same in every run
    first = second = hidden["key"]
    while second == first:
        second = "".join(draw.choices(string.digits, k=len(first)))
    lines = hidden.string.split("\n")
    line = hidden.string.count("\n", 0, hidden.start())
    apart = [place for place in range(len(lines) + 1) if place not in (line, line + 1)]
    place = draw.choice(apart or [line, line + 1])
    lines.insert(place, f"The pass key is {second}. Remember it. {second} is the pass key.")
    if place <= line:
        first, second = second, first
    return replace(
        question,
        dataset=LARGER,
        question="Which passkey is larger? First or second?",
        answers=("First" if first > second else "Second",),
        metric="first_or_second",
        document="\n".join(lines),
    )
