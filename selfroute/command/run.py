"""Makes the models and asks the questions; prints nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from selfroute.command.framework import Framework, Output, Pipeline
from selfroute.command.models import load_model
from selfroute.command.texts import Passage
from selfroute.demo.corpus import Question
from selfroute.errors import ConfigurationError
from selfroute.usage.ledger import Ledger

_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Models:
    """Who answers.

    Attributes:
        llm: The model of the first step, and of the second if there is no other: the framework's own.
        long_context_llm: The model of the second step.
        name: What to call them.
        is_language_model: Whether it is more than the extractive reader.
        has_list_price: Whether it is asked at its provider's own address, so that it should be in the price lists.
    """

    llm: Any
    long_context_llm: Any
    name: str
    is_language_model: bool = True
    has_list_price: bool = True

    @property
    def at_once(self) -> int:
        """How many questions to ask them at a time: the extractive reader works here, a provider elsewhere."""
        return _AT_ONCE if self.is_language_model else 1


def load_models(
    framework: Framework, model: str | None, *, long_context: str | None, base_url: str | None
) -> Models | None:
    """Make the models that were asked for; None if none were, for then the extractive reader answers.

    Raises:
        ConfigurationError: They can not be made, or options are given that need `--model`.
        MissingPackageError: The provider's package is not installed.
    """
    if model is None:
        for option, value in (("--long-context-model", long_context), ("--base-url", base_url)):
            if value is not None:
                msg = f"{option} needs --model too, for example --model openai:gpt-4o-mini"
                raise ConfigurationError(msg)
        return None
    llm = load_model(framework, model, base_url=base_url)
    if long_context is None:
        return Models(llm, None, model, has_list_price=base_url is None)
    same_server = long_context.partition(":")[0] == model.partition(":")[0]
    second = load_model(framework, long_context, base_url=base_url if same_server else None)
    name = f"{model}, and {long_context} for whole documents"
    return Models(llm, second, name, has_list_price=base_url is None)


def extractive_reader(framework: Framework, embeddings: Any) -> Models:
    """Return the reader that answers where no model was asked for."""
    reader = framework.extractive_reader(embeddings)
    return Models(reader, None, "the extractive reader", is_language_model=False, has_list_price=False)


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one question.

    Attributes:
        question: The question.
        route: The step that produced the answer.
        answerable: Whether there is one.
        answer: The answer.
        match: Whether it contains a reference answer, or declines where there is none: a hint, no grading.
        usage: What it took.
    """

    question: Question
    route: str
    answerable: bool
    answer: str
    match: bool
    usage: Mapping[str, Any]


def answer_all(pipeline: Pipeline, questions: Sequence[Question], *, at_once: int) -> Iterator[Row]:
    """Ask the questions, a few at a time, and yield what became of them in their order.

    Args:
        pipeline: Answers them.
        questions: The questions.
        at_once: How many are asked at a time.
    """
    with ThreadPoolExecutor(at_once) as threads:
        for start in range(0, len(questions), at_once):
            some = questions[start : start + at_once]
            outputs = threads.map(pipeline.ask, [question.question for question in some])
            for question, output in zip(some, outputs, strict=True):
                yield _row(question, output)


def _row(question: Question, output: Output) -> Row:
    answer, answerable = output.answer, output.answerable
    return Row(
        question=question,
        route=output.route,
        answerable=answerable,
        answer=answer,
        match=_matches(answer, question.answers) if answerable else question.kind == "unanswerable",
        usage=output.usage,
    )


def _matches(answer: str, references: Sequence[str]) -> bool:
    """Whether the answer contains a reference, of which the parts between commas may stand apart."""
    words = f" {_plain(answer)} "
    return any(all(f" {_plain(part)} " in words for part in reference.split(", ")) for reference in references)


def _plain(text: str) -> str:
    """Case, punctuation and articles do not count."""
    words = re.findall(r"\w+", re.sub(r"(?<=\d),(?=\d)|['’]", "", text.lower()))  # noqa: RUF001
    return " ".join(word for word in words if word not in {"a", "an", "the"})


def totals(rows: Sequence[Row], figures: Mapping[str, Any]) -> dict[str, int]:
    """The sums of the demo.

    Args:
        rows: What became of the questions.
        figures: The ledger's, as plain JSON.
    """
    routes, tokens = figures["routes"], figures["tokens"]
    return {
        "questions": figures["queries"],
        "answered_by_rag": routes["rag"],
        "escalated": routes["long_context"],
        "unanswerable": figures["unanswerable"],
        "matches": sum(row.match for row in rows),
        "tokens": tokens["total_tokens"],
    }


def report(
    rows: Sequence[Row], ledger: Ledger, *, framework: Framework, models: Models, seconds: Mapping[str, float]
) -> dict[str, Any]:
    """Turn a run of the demo into plain JSON."""
    figures = ledger.to_dict()
    return {
        "framework": framework.NAME,
        "reader": models.name,
        "language_model": models.is_language_model,
        "questions": [_row_as_json(row) for row in rows],
        "totals": totals(rows, figures),
        "ledger": figures,
        "seconds": {name: round(time, 3) for name, time in seconds.items()},
    }


def _row_as_json(row: Row) -> dict[str, Any]:
    record = asdict(row)
    return {**record.pop("question"), **record}


def answer_as_json(output: Output, passages: Mapping[str, Passage], names: Mapping[str, str]) -> dict[str, Any]:
    """Turn what became of a question into plain JSON.

    Args:
        output: What became of it.
        passages: The passages by id.
        names: What to call each source.
    """
    record = {key: getattr(output, key) for key in ("question", "answer", "route", "answerable", "decision", "usage")}
    retrieved = [passages[name] for name in output.retrieved]
    return {
        **record,
        "passages": [
            {"source": names[passage.source], "start": passage.start, "text": passage.text} for passage in retrieved
        ],
    }
