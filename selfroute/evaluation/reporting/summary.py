"""Sums an evaluation up in a few sentences: only what was measured, and on how many questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from selfroute.evaluation.records import Record, Strategy
from selfroute.evaluation.reporting.compared import ComparedResults, tokens_row
from selfroute.evaluation.reporting.decline_rules import sensitivity
from selfroute.evaluation.reporting.money import cost_share
from selfroute.evaluation.reporting.notes import about_cut_documents, about_words, metric_names
from selfroute.evaluation.reporting.statistics import Comparison

_NAMES: Mapping[Strategy, str] = {
    "rag": "RAG alone",
    "long_context": "the long context",
    "self_route": "Self-Route",
    "sections": "Self-Route with sections",
    "graded": "graded answerability",
    "graded_sections": "graded answerability with sections",
}
_STEERED: tuple[Strategy, ...] = ("sections", "graded", "graded_sections")


def summary(record: Record) -> list[str]:
    """Return a few sentences on the quality and the price of each strategy, at the first k that was asked for."""
    compared = ComparedResults.of(record)
    if not compared.keys:
        return ["No question was finished by every strategy, so there is nothing to compare."]
    return [*_scores(compared), *_first_step(compared), *_basis(compared), *_doubts(compared), *_measured(compared)]


def _scores(compared: ComparedResults) -> Iterator[str]:
    k = compared.ks[0]
    average, by_dataset = compared.figures(k)
    first = next(strategy for strategy in ("self_route", *_STEERED, "rag", "long_context") if strategy in average)
    where = [f"on average over {len(by_dataset)} data sets"] if len(by_dataset) > 1 else []
    where += [f"with k={k}"] if len(compared.ks) > 1 else []
    where += ["judged by meaning"] if compared.measure == "judged" else []
    text = f"{', '.join([*where, _NAMES[first]])} scores {average[first]:.2f}"
    reader = compared.compare(first, "long_context") if first != "long_context" else None
    if reader:
        text += f", the long context {average['long_context']:.2f}: {_difference(reader)}"
    if price := _price(compared, first, whole="its" if reader else "the long context's"):
        text += f" for {price}" if reader else f" for an estimated {price}"
    yield f"{text[0].upper()}{text[1:]}."
    for other in ("rag", *_STEERED):
        if other != first and (found := compared.compare(first, other)):
            scored = f"{_NAMES[other]} scores {average[other]:.2f}: {_difference(found, than=_NAMES[first])}"
            price = _price(compared, other, whole="the long context's")
            yield f"{scored[0].upper()}{scored[1:]}{price and f' for {price}'}."


def _difference(found: Comparison, *, than: str = "") -> str:
    """Return the difference of two strategies in words: the first against the second, or with `than` the reverse."""
    sign = -100 if than else 100
    if found.shows_difference:
        text = f"{_more(sign * found.difference)}{than and f' than {than}'}{found.where}"
    else:
        text = f"no difference{than and f' from {than}'} shown"
    if not found.interval:
        return text
    low, high = sorted((sign * end for end in found.interval), key=abs)
    if low * high >= 0:
        return f"{text} (95 %: {abs(low):.2f} to {_more(high or low)})"
    return f"{text} (95 %: {_more(min(low, high))} to {_more(max(low, high))})"


def _more(points: float) -> str:
    return f"{abs(points):.2f} {'more' if points > 0 else 'less'}"


def _price(compared: ComparedResults, strategy: Strategy, *, whole: str) -> str:
    """Return the tokens and the cost in per cent of the long context's, as far as they are known."""
    if strategy == "long_context":
        return ""
    k = compared.ks[0]
    average, _ = compared.figures(k)
    shares = {"input tokens": average.get(tokens_row(strategy)), "cost": cost_share(compared, (strategy, k))}
    parts = [(share, what) for what, share in shares.items() if share is not None]
    return " and ".join(f"{_percent(share)} of {'its' if n else whole} {what}" for n, (share, what) in enumerate(parts))


def _first_step(compared: ComparedResults) -> Iterator[str]:
    average, by_dataset = compared.figures(compared.ks[0])
    share = average.get("answerable %")
    if share is not None:
        mean = ", on average over the data sets" if len(by_dataset) > 1 else ""
        yield f"The first step answered {_percent(share)} of the questions{mean}."


def _basis(compared: ComparedResults) -> Iterator[str]:
    """Yield how many questions this rests on, if not on all."""
    failed = " and ".join(dict.fromkeys(_NAMES[strategy] for strategy, _ in compared.failed))
    none = f"{failed} finished none of them" if failed else ""
    if compared.left_out:
        found = f"{len(compared.keys):,} of {len(compared.documents):,} questions"
        judged = " and the judge graded" if compared.measure == "judged" else ""
        yield f"This rests on {found}, those that the strategies finished{judged}{none and f'; {none}'}."
    elif none:
        yield f"This rests on all {len(compared.documents):,} questions; {none}."


def _doubts(compared: ComparedResults) -> Iterator[str]:
    """Yield what else the figures hang on: documents that the model read in part, and the rules for declines."""
    if cut := about_cut_documents(compared):
        yield cut
    if moved := sensitivity(compared):
        yield moved


def _measured(compared: ComparedResults) -> Iterator[str]:
    """Yield how the strategies score by words beside a judge; without one, what such scores cannot see."""
    if compared.measure == "score":
        if compared.record.settings.get("judge"):
            yield f"The judge graded no answer, so these are scores by {' and '.join(metric_names(compared.record))}."
        elif (words := about_words(compared.record)) and compared.record.settings.get("language_model", True):
            yield words
        return
    own = ComparedResults.of(compared.record, "score")
    average, _ = own.figures(own.ks[0])
    scores = [f"{_NAMES[strategy]} {score:.2f}" for strategy in _NAMES if (score := average.get(strategy)) is not None]
    yield f"By {' and '.join(metric_names(compared.record))} instead: {', '.join(scores)}."


def _percent(share: float) -> str:
    return f"{share:.{0 if share >= 10 else 1}f} %"  # noqa: PLR2004
