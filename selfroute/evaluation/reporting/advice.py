"""Says which strategy to take, in words, in code and as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from selfroute.errors import ConfigurationError
from selfroute.evaluation.calibrating.evidence import Evidence
from selfroute.evaluation.calibrating.figures import Point, frontier_of
from selfroute.evaluation.calibrating.from_results import Material, material_of
from selfroute.evaluation.calibrating.recommendation import Recommendation, recommend
from selfroute.evaluation.calibrating.wording import code_of, sentences_of
from selfroute.evaluation.records import Record, Strategy
from selfroute.evaluation.reporting.compared import ComparedResults
from selfroute.evaluation.reporting.notes import metric_names

_NEEDED: tuple[Strategy, ...] = ("rag", "long_context")


@dataclass(frozen=True, slots=True)
class Advice:
    """What an evaluation says about which strategy to take.

    Attributes:
        words: The advice and the numbers of questions behind it, in sentences, or why there is no advice. Empty if
            nothing was compared.
        code: The lines to paste into the constructor of the chain or engine; None if there is no advice.
        found: The figures behind it; None if there is no advice.
        frontier: Every strategy that was run, with all bounds that can be computed from the run, the cheapest first.
        k: The passages of a draft that the advice is for; None if that was not varied.
    """

    words: Sequence[str]
    code: str | None = None
    found: Recommendation | None = field(default=None, repr=False)
    frontier: Sequence[Point] = field(default=(), repr=False)
    k: int | None = None

    def __str__(self) -> str:
        """Return the sentences and the code."""
        return "\n".join(self.lines)

    @property
    def lines(self) -> list[str]:
        """The sentences with the code below them, for a terminal; the code is indented."""
        code = (self.code or "").splitlines()
        return [*self.words, *([""] if code else []), *(line and f"    {line}" for line in code)]

    @property
    def is_priced(self) -> bool:
        """Whether every point of the frontier has a price; else costs are tokens."""
        return all(point.figures.dollars is not None for point in self.frontier)

    def recommends(self, point: Point) -> bool:
        """Return whether a point of the frontier is what is recommended."""
        return self.found is not None and point.rule == self.found.rule and point.k in (None, self.k)

    def data(self) -> dict[str, Any]:
        """Return all but the frontier, which has a table of its own."""
        return {"words": list(self.words), "code": self.code, **(asdict(self.found) if self.found else {})}


def advise(record: Record) -> Advice:
    """Return which strategy to take, by what a judge says if there is one, on the questions that are compared."""
    compared = ComparedResults.of(record)
    if not compared.keys:
        return Advice(())
    if not record.settings.get("language_model", True):
        return Advice(
            ("No recommendation: the built-in reader is not a language model. Evaluate with your model (--model).",)
        )
    if missing := [strategy for strategy in _NEEDED if not compared.get(strategy, compared.ks[0])]:
        return Advice((_about_missing(compared, missing),))
    k, *others = compared.ks
    try:
        main = _material(compared, k)
        tried = {k: Evidence(main.rows)} | {other: Evidence(_material(compared, other).rows) for other in others}
    except ConfigurationError as error:
        return Advice((f"No recommendation: {error}.",))
    found = recommend(tried[k], sections=main.sections)
    frontier = frontier_of(tried, sections=main.sections)
    advice = Advice((), code_of(found.rule, found.sections), found, frontier, k)
    return replace(advice, words=(*sentences_of(found), *_about(compared, main, advice)))


def _material(compared: ComparedResults, k: int | None) -> Material:
    """Return the questions that are compared, with the replies at one k."""
    keys = set(compared.keys)
    record = compared.record
    asked = [question for question in record.questions if question.key in keys]
    return material_of(replace(record, questions=asked, settings={**record.settings, "k": [k] if k else []}))


def _about_missing(compared: ComparedResults, missing: Sequence[Strategy]) -> str:
    failed = [strategy for strategy, _ in compared.failed]
    parts = [f"{each} {'finished no question' if each in failed else 'was not run'}" for each in missing]
    return (
        f"No recommendation: {' and '.join(parts)}. A recommendation needs the answers of RAG and of the long context "
        "to each question. Evaluate with the default strategies."
    )


def _about(compared: ComparedResults, material: Material, advice: Advice) -> Iterator[str]:
    """Yield what the figures are, and what they cannot show."""
    if compared.measure == "judged":
        yield "Quality is correctness by meaning, as the judge grades it."
    else:
        yield f"Quality is {' and '.join(metric_names(compared.record))} here."
    if not advice.is_priced:
        yield "Not every reply has a known price, so input tokens decide which strategy is cheaper."
    if len(compared.ks) > 1:
        yield f"This is for k={advice.k}; the frontier has every k."
    if len(compared.datasets) > 1:
        yield "These figures are means over all questions; in the first table they are means over the data sets."
    yield from material.remarks
