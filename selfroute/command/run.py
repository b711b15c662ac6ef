"""Makes the models, asks the questions of the demo, and turns answers into JSON."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any

from selfroute.command.framework import Framework, Output, Session
from selfroute.command.models import load_model
from selfroute.command.texts import IndexedPassage
from selfroute.demo import recorded
from selfroute.demo.corpus import DemoQuestion
from selfroute.demo.recorded import Recording
from selfroute.errors import ConfigurationError
from selfroute.usage.ledger import Ledger

_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Models:
    """The models that answer.

    Attributes:
        llm: The framework's model, for the first step, and for the second if there is no other.
        long_context_llm: The model of the second step.
        name: Their name for people.
        is_language_model: Whether it is not the extractive reader.
        has_list_price: Whether the provider itself is asked, so that the price lists should have a price.
        recording: The recording that answers in place of a model, if one does.
    """

    llm: Any
    long_context_llm: Any
    name: str
    is_language_model: bool = True
    has_list_price: bool = True
    recording: Recording | None = None

    @property
    def at_once(self) -> int:
        """How many questions to ask at a time: the extractive reader runs on this machine, a provider elsewhere."""
        return _AT_ONCE if self.is_language_model else 1


def load_models(
    framework: Framework, model: str | None, *, long_context: str | None, base_url: str | None
) -> Models | None:
    """Make the models that the user names; None without `--model`: then the extractive reader answers.

    Raises:
        ConfigurationError: They cannot be made, or an option is given that needs `--model`.
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
    """Return the models for a user who names none."""
    reader = framework.extractive_reader(embeddings)
    return Models(reader, None, "the extractive reader", is_language_model=False, has_list_price=False)


def recorded_model(framework: Framework) -> Models:
    """Return the recording that comes with the package, as models."""
    return Models(framework.recorded_model(), None, recorded.LABEL, recording=recorded.load_recording())


@dataclass(frozen=True, slots=True)
class DemoAnswer:
    """The answer to a question of the demo.

    Attributes:
        question: The question.
        route: The step that produced the answer.
        answerable: Whether the question was answered.
        answer: The answer.
        match: Whether it contains a reference answer, or declines where there is none: a hint, not a grade.
        grade: How right it is by meaning, from 0 to 1; None where nobody judged.
        usage: The tokens and the cost.
        decision: Why it took that route.
    """

    question: DemoQuestion
    route: str
    answerable: bool
    answer: str
    match: bool
    grade: float | None
    usage: Mapping[str, Any]
    decision: Mapping[str, Any] = field(default_factory=dict)


def answer_all(session: Session, questions: Sequence[DemoQuestion], *, models: Models) -> Iterator[DemoAnswer]:
    """Ask the questions, a few at a time, and yield the answers in order.

    Args:
        session: Answers the questions.
        questions: The questions.
        models: The models of the session, which say how many are asked at a time and who grades the answers.
    """
    with ThreadPoolExecutor(models.at_once) as threads:
        for start in range(0, len(questions), models.at_once):
            some = questions[start : start + models.at_once]
            outputs = threads.map(session.ask, [question.question for question in some])
            for question, output in zip(some, outputs, strict=True):
                yield _answer(question, output, models.recording)


def _answer(question: DemoQuestion, output: Output, recording: Recording | None) -> DemoAnswer:
    declined = not output.answerable
    is_right = float(question.kind == "unanswerable")  # of a decline
    return DemoAnswer(
        question=question,
        route=output.route,
        answerable=output.answerable,
        answer=output.answer,
        match=bool(is_right) if declined else _matches(output.answer, question.answers),
        grade=None if recording is None else is_right if declined else recording.grade(question.id, output.answer),
        usage=output.usage,
        decision=output.decision,
    )


def _matches(answer: str, references: Sequence[str]) -> bool:
    """Return whether the answer contains a reference; parts between commas may be in different places."""
    words = f" {_plain(answer)} "
    return any(all(f" {_plain(part)} " in words for part in reference.split(", ")) for reference in references)


def _plain(text: str) -> str:
    """Return a text without case, punctuation and articles."""
    words = re.findall(r"\w+", re.sub(r"(?<=\d),(?=\d)|['’]", "", text.lower()))  # noqa: RUF001
    return " ".join(word for word in words if word not in {"a", "an", "the"})


def totals(answers: Sequence[DemoAnswer], figures: Mapping[str, Any]) -> dict[str, int]:
    """Return the totals of the demo.

    Args:
        answers: The answers.
        figures: The ledger's figures, as plain JSON.
    """
    answered = Counter(answer.route for answer in answers if answer.answerable)
    return {
        "questions": figures["queries"],
        "answered_by_rag": answered["rag"],
        "answered_by_sections": answered["sections"],
        "escalated": figures["routes"]["long_context"],
        "stopped": figures["stopped"],
        "unanswerable": figures["unanswerable"],
        "matches": sum(answer.match for answer in answers),
        "tokens": figures["tokens"]["total_tokens"],
    }


@dataclass(frozen=True, slots=True)
class Compared:
    """What one strategy made of the questions of the demo.

    Attributes:
        right: The sum of the grades.
        tokens: All tokens.
        cost: The cost in US dollars; None if no price is known.
    """

    right: float
    tokens: int
    cost: Decimal | None

    @classmethod
    def of(cls, answers: Sequence[DemoAnswer], ledger: Ledger) -> Compared:
        """Add up the grades of the answers, and take the rest from the ledger that counted them."""
        figures = ledger.to_dict()
        cost = figures["money"]["cost"]
        right = sum(answer.grade or 0.0 for answer in answers)
        return cls(right, figures["tokens"]["total_tokens"], None if cost is None else Decimal(str(cost)))


def demo_as_json(
    answers: Sequence[DemoAnswer], ledger: Ledger, *, framework: Framework, models: Models, seconds: Mapping[str, float]
) -> dict[str, Any]:
    """Turn a run of the demo into plain JSON."""
    figures = ledger.to_dict()
    return {
        "framework": framework.NAME,
        "reader": models.name,
        "language_model": models.is_language_model,
        "questions": [_answer_as_json(answer) for answer in answers],
        "totals": totals(answers, figures),
        "ledger": figures,
        "seconds": {name: round(time, 3) for name, time in seconds.items()},
    }


def comparison_as_json(compared: Mapping[str, Compared]) -> dict[str, Any]:
    """Turn what each strategy made of the same questions into plain JSON."""
    return {name: {**asdict(one), "cost": one.cost and str(one.cost)} for name, one in compared.items()}


def _answer_as_json(answer: DemoAnswer) -> dict[str, Any]:
    record = asdict(answer)
    return {**record.pop("question"), **record}


def answer_as_json(output: Output, passages: Mapping[str, IndexedPassage], names: Mapping[str, str]) -> dict[str, Any]:
    """Turn an answer into plain JSON.

    Args:
        output: The answer.
        passages: The passages by id.
        names: The name of each source, for people.
    """
    retrieved = [passages[name] for name in output.retrieved]
    return {
        **output_as_json(output, names),
        "passages": [
            {"source": names[passage.source], "page": passage.page, "start": passage.start, "text": passage.text}
            for passage in retrieved
        ],
    }


def output_as_json(output: Output, names: Mapping[str, str]) -> dict[str, Any]:
    """Turn an answer into plain JSON, without the passages; the arguments are those of `answer_as_json`."""
    record = {key: getattr(output, key) for key in ("question", "answer", "route", "answerable", "decision", "usage")}
    sections = [
        {"source": names[document.source], "page": section.page, "start": section.start, "end": section.end}
        for document in output.read
        for section in document.sections
    ]
    citations = [{**asdict(citation), "source": names[citation.source]} for citation in output.citations]
    return {**record, "sections": sections, "citations": citations}
