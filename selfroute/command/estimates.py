"""What a run will take, before it is started."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby

from selfroute.evaluation import prompts
from selfroute.evaluation.asking.budget import OUTPUT_TOKENS
from selfroute.evaluation.asking.chunks import chunks
from selfroute.evaluation.questions import Question
from selfroute.evaluation.results import Strategy
from selfroute.evaluation.table import Cell, Table
from selfroute.usage.counts import Cost, StepUsage, count_tokens

Price = Callable[[StepUsage], Cost]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How long the prompts about a question are, in tokens, a quarter of the characters.

    Attributes:
        drafts: That of the first step, for each k.
        whole: That of the second.
        bare: That of the question alone.
    """

    drafts: tuple[int, ...]
    whole: int
    bare: int


def sizes_of(questions: Iterable[Question], *, ks: Sequence[int], whole: Callable[[Question], str]) -> list[Sizes]:
    """Measure the prompts about questions without retrieving anything: chunks count with their average length.

    Args:
        questions: The questions.
        ks: How many passages are retrieved.
        whole: What is read of a question's document as a whole.
    """
    known: dict[str, tuple[int, int, int]] = {}
    found = []
    for question in questions:
        key = question.document_id
        if key not in known:
            lengths = [count_tokens(chunk) for chunk in chunks(question.document or "")]
            known[key] = count_tokens(whole(question)), len(lengths), sum(lengths)
        read, count, total = known[key]
        bare = count_tokens(prompts.PROMPTS[question.prompt] + question.question + "".join(question.choices))
        drafts = tuple(bare + total * min(k, count) // max(count, 1) for k in ks)
        found.append(Sizes(drafts, bare + read, bare))
    return found


def estimate(  # noqa: PLR0913 - all that decides
    questions: Sequence[Question],
    sizes: Sequence[Sizes],
    *,
    strategies: Sequence[Strategy],
    closed_book: bool,
    based_only_on: bool,
    explain_declines: bool,
    prices: tuple[Price, Price],
    kept: int,
) -> Table:
    """Estimate what a run will take.

    Each reply counts once: Self-Route uses the drafts of `rag` and the long-context replies of `long_context`.

    Args:
        questions: The questions, those of a data set together.
        sizes: What `sizes_of` measured.
        strategies: The strategies.
        closed_book: Whether each question is asked without text, too.
        based_only_on: Whether documents are read with a second prompt, too.
        explain_declines: Whether the model is asked why it declined.
        prices: Price a call of the first step and one of the second.
        kept: How many replies are there from earlier runs.
    """
    drafts = bool({"rag", "self_route"} & set(strategies))
    whole = "long_context" in strategies
    maybe = "self_route" in strategies and not whole
    rows: list[tuple[Cell, ...]] = []
    pairs = zip(questions, sizes, strict=True)
    for dataset, group in groupby(pairs, key=lambda pair: pair[0].dataset):
        some = [size for _, size in group]
        first = [tokens for size in some for tokens in size.drafts] if drafts else []
        second = [size.whole for size in some for _ in range(1 + based_only_on)] if whole else []
        second = second or ([size.whole for size in some] if maybe else [])
        bare = [size.bare for size in some] if closed_book else []
        cost = _total(first, prices[0]) + _total([*second, *bare], prices[1])
        rows.append((dataset, len(some), len(first), sum(first), len(second), sum(second), _dollars(cost)))
    costs = [row[-1] for row in rows]
    known = [float(cost) for cost in costs if isinstance(cost, float)]
    total: Cell = sum(known) if len(known) == len(costs) else None
    sums = [sum(int(row[place] or 0) for row in rows) for place in range(1, 6)]
    rows.append(("all", *sums, total))
    unknown = prices[1](StepUsage(1, 1)).unknown if total is None else None
    return Table(
        "estimate",
        "What this run will take",
        ("data set", "questions", "drafts", "draft tokens", "long contexts", "long-context tokens", "US dollars"),
        tuple(rows),
        tuple(_notes(maybe=maybe, explain=explain_declines, kept=kept, unknown=unknown)),
    )


def _total(prompts_: Sequence[int], price: Price) -> Cost:
    return sum((price(StepUsage(tokens, OUTPUT_TOKENS)) for tokens in prompts_), Cost(Decimal(0)))


def _dollars(cost: Cost) -> float | None:
    return None if cost.dollars is None else float(cost.dollars)


def _notes(*, maybe: bool, explain: bool, kept: int, unknown: str | None) -> Iterable[str]:
    yield f"Tokens are a quarter of the characters, and each reply is taken to have {OUTPUT_TOKENS}."
    if maybe:
        yield "Long contexts are counted for every question; they are read only where the model declines."
    if explain:
        yield "Each draft that is declined is asked about once more: what the drafts take is the most that can come to."
    if kept:
        yield f"{kept} replies are kept from earlier runs; what they answer is not paid again."
    if unknown:
        yield f"Money is not known: {unknown}"
