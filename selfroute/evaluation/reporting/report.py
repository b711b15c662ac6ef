"""Makes an HTML page of an evaluation that needs no network and runs only its own script.

All text from models, documents and questions is escaped, and the page's Content-Security-Policy forbids everything
that is not in the page itself.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeVar

from selfroute import __version__
from selfroute.evaluation.questions import Question
from selfroute.evaluation.reasons import LETTERS
from selfroute.evaluation.records import Failure, Measure, Passage, Reason, Record, Result
from selfroute.evaluation.reporting.advice import Advice, advise
from selfroute.evaluation.reporting.compared import ComparedResults
from selfroute.evaluation.reporting.evidence import Evidence, find_evidence
from selfroute.evaluation.reporting.notes import judge_cost
from selfroute.evaluation.reporting.plots import CAPTIONS, NAMES, plots
from selfroute.evaluation.reporting.summary import summary
from selfroute.evaluation.reporting.tables import tables
from selfroute.evaluation.table import Cell, Table, as_text, is_figures
from selfroute.usage.ledger_text import dollars

if TYPE_CHECKING:
    from jinja2 import Environment

OfQuestion = TypeVar("OfQuestion", Result, Failure, Reason)

_UNKNOWN = "\N{EN DASH}"
_ROUTED = ("self_route", "wider", "graded", "graded_wider")
_MOST = 10  # passages of a question; with all of them no browser could open the page
_EQUAL = 1e-9  # scores that differ by less are equal but for rounding
_INVISIBLE = {code: "\N{REPLACEMENT CHARACTER}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


@dataclass(frozen=True)
class QuestionResults:
    """A question with its results.

    Attributes:
        question: The question.
        results: The results of the strategies.
        failures: The tasks that could not be finished.
        reasons: Why drafts were declined.
        k: The k whose passages are shown.
        measure: The scores that are compared.
        evidence: Where the answers stand.
    """

    question: Question
    results: Sequence[Result]
    failures: Sequence[Failure]
    reasons: Sequence[Reason]
    k: int | None
    measure: Measure = "score"
    evidence: Evidence = field(default_factory=Evidence)

    @property
    def routes(self) -> str:
        """The routes that the strategies with a choice of routes took."""
        return " ".join(sorted({result.route for result in self._of(*_ROUTED) if result.route}))

    @property
    def disagree(self) -> bool:
        """Whether the strategies score differently, with the same k."""
        alone = self._of("long_context")
        compared = self._of("rag", *_ROUTED)
        groups = [[each for each in compared if each.k == k] + alone for k in {each.k for each in compared}]
        scores = [self._scores(group) for group in groups]
        return any(of_group and max(of_group) - min(of_group) > _EQUAL for of_group in scores)

    @property
    def worse(self) -> bool:
        """Whether Self-Route scores less than the long context."""
        alone, routed = self._scores(self._of("long_context")), self._scores(self._of("self_route"))
        return any(one < score - _EQUAL for one in routed for score in alone)

    @property
    def passages(self) -> Sequence[Passage]:
        """The retrieved passages; they are the same for all strategies."""
        return _passages(self.results, self.k)

    def names_of(self, results: Iterable[Result]) -> str:
        """Return the names of the strategies of some results."""
        return ", ".join(dict.fromkeys(NAMES[result.strategy] for result in results))

    def _scores(self, results: Sequence[Result]) -> list[float]:
        return [score for each in results if (score := getattr(each, self.measure)) is not None]

    def _of(self, *strategies: str) -> list[Result]:
        return [result for result in self.results if result.strategy in strategies and not result.based_only_on]


def html(
    record: Record,
    *,
    advice: Advice | None = None,
    tables_: Sequence[Table] | None = None,
    plots_: Mapping[str, bytes] | None = None,
) -> str:
    """Make the report.

    Args:
        record: The record.
        advice: Which strategy to take; None to find out.
        tables_: Its tables; None to make them.
        plots_: Its plots; None to draw them.

    Returns:
        The page, to be saved as UTF-8.
    """
    from markupsafe import Markup  # noqa: PLC0415

    template = environment().from_string(part("report.html.jinja"))
    advice = advice or advise(record)
    images = (plots(record, advice) if plots_ is None else plots_).items()
    style, script = part("report.css"), part("report.js")
    judge = record.settings.get("judge")
    return template.render(
        record=record,
        settings={name: value for name, value in record.settings.items() if name != "judge"},
        judge=judge,
        judge_cost=judge and judge_cost(judge),
        version=__version__,
        advice=advice,
        summary=summary(record),
        tables=tables(record, advice) if tables_ is None else tables_,
        plots=[(CAPTIONS[name], b64encode(image).decode()) for name, image in images],
        questions=_question_results(record),
        names=NAMES,
        reasons=LETTERS,
        most=_MOST,
        # these two are the package's own; nothing is filled into them
        style=Markup(style),  # noqa: S704
        script=Markup(script),  # noqa: S704
        style_hash=hash_of(style),
        script_hash=hash_of(script),
    )


def environment() -> Environment:
    """Return what fills in pages: it escapes all text, and shows signs for characters that HTML cannot hold."""
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415

    made = Environment(
        autoescape=True, undefined=StrictUndefined, finalize=_visible, trim_blocks=True, lstrip_blocks=True
    )
    made.filters |= {"cell": _cell, "money": _money, "figures": _figures, "plain": _plain}
    return made


def _question_results(record: Record) -> list[QuestionResults]:
    results = _by_question(each for each in record.results if each.retriever is None)
    failures = _by_question(record.failures)
    reasons, compared = _by_question(record.reasons), ComparedResults.of(record)
    k, measure = compared.ks[0], compared.measure
    evidence = find_evidence(
        (one, [each for each in of_one if each.k in {k, None}], _passages(of_one, k)[:_MOST])
        for one in record.questions
        for of_one in [results[one.key]]
    )
    return [
        QuestionResults(one, results[one.key], failures[one.key], reasons[one.key], k, measure, evidence[one.key])
        for one in record.questions
    ]


def _passages(results: Iterable[Result], k: int | None) -> Sequence[Passage]:
    return next((result.passages for result in results if result.passages and result.k == k), ())


def _by_question(some: Iterable[OfQuestion]) -> Mapping[tuple[str, str], list[OfQuestion]]:
    found = defaultdict(list)
    for each in some:
        found[each.dataset, each.id].append(each)
    return found


def part(name: str) -> str:
    """Return a file of this package: a template, a style or a script."""
    return (files("selfroute") / "evaluation" / "reporting" / name).read_text(encoding="utf-8")


def hash_of(text: str) -> str:
    """Return the source expression that allows an inline script or style in a Content-Security-Policy."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _visible(value: Any) -> Any:
    """Return a text with a sign for each character that HTML cannot hold; anything else unchanged."""
    if type(value) is not str:  # Markup is the package's own
        return value
    return value.translate(_INVISIBLE).encode("utf-8", "replace").decode()


def _cell(value: Cell) -> str:
    return as_text(value, unknown=_UNKNOWN)


def _money(amount: str | None) -> str:
    return _UNKNOWN if amount is None else dollars(amount)


def _figures(table: Table) -> list[bool]:
    """Return for each column whether it has figures; the first has the names of the rows."""
    return [bool(index) and is_figures(row[index] for row in table.rows) for index in range(len(table.columns))]


def _plain(value: object) -> str:
    """Return a setting as text."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
