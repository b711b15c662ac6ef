"""Estimates the tokens and the cost of an evaluation before it starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby

from selfroute.command.evaluate_choices import Choices
from selfroute.evaluation import prompts
from selfroute.evaluation.asking.budget import OUTPUT_TOKENS
from selfroute.evaluation.asking.chunks import chunks
from selfroute.evaluation.asking.replies import count_kept
from selfroute.evaluation.asking.retrieval import INDEXED, SUMMARIZED, WITHOUT_DOWNLOAD, downloads, is_of_provider
from selfroute.evaluation.judging import Sheet, answers_of
from selfroute.evaluation.questions import Question
from selfroute.evaluation.records import GRADED, SECTIONS
from selfroute.evaluation.table import Cell, Table
from selfroute.usage.counts import Cost, StepUsage
from selfroute.usage.tokens import count_tokens

StepPrice = Callable[[StepUsage], Cost]


@dataclass(frozen=True, slots=True)
class _Lengths:
    """The lengths of the prompts for a question, in estimated tokens.

    Attributes:
        drafts: The prompts of the first step, for each k.
        whole: The prompt of the second step.
        sections: The prompt with sections, as long as they may be; None where that is more than half of the document.
        bare: The prompt without any text.
    """

    drafts: list[int]
    whole: int
    sections: int | None
    bare: int


@dataclass(frozen=True, slots=True)
class _Calls:
    """Calls of one kind: its columns, none if they are not shown; the lengths of their prompts; and their price."""

    columns: tuple[str, ...]
    lengths: Sequence[int]
    price: StepPrice


def estimate(  # noqa: PLR0913 - each changes the estimate
    questions: Sequence[Question],
    choices: Choices,
    *,
    whole: Callable[[Question], str],
    prices: tuple[StepPrice, StepPrice],
    judge: StepPrice | None,
    with_model: bool,
) -> Table:
    """Estimate the tokens and the cost of a run; each reply counts once.

    Strategies share the drafts of `rag` or of `graded`, and the replies of `long_context`.

    Args:
        questions: The questions, those of a data set together.
        choices: What is asked about them.
        whole: Returns a question's document as the model reads it.
        prices: Return the cost of a call of the first step and of the second.
        judge: Returns the cost of a call of the judge; None without one.
        with_model: Whether a model writes the summaries of the retrievers.
    """
    columns: list[str] = ["data set", "questions"]
    rows: list[tuple[Cell, ...]] = []
    pairs = zip(questions, _measure(questions, choices.ks, whole), strict=True)
    for dataset, group in groupby(pairs, key=lambda pair: pair[0].dataset):
        some = list(group)
        calls = list(_calls(some, choices, prices, judge))
        shown = [one for one in calls if one.columns]
        columns = ["data set", "questions", *(name for one in shown for name in one.columns)]
        counts = [count for one in shown for count in (len(one.lengths), sum(one.lengths))]
        rows.append((dataset, len(some), *counts, _dollars(calls)))
    costs = [row[-1] for row in rows]
    known = [float(cost) for cost in costs if isinstance(cost, float)]
    sums = [sum(int(row[place] or 0) for row in rows) for place in range(1, len(columns))]
    rows.append(("all", *sums, sum(known) if len(known) == len(costs) else None))
    every = (*prices, *((judge,) if judge else ()))
    unknown = next(filter(None, (price(StepUsage(1, 1)).unknown for price in every)), None)
    told = _notes(choices, judged=judge is not None, unknown=None if len(known) == len(costs) else unknown)
    notes = (*told, *_about_retrievers(choices, with_model=with_model))
    return Table("estimate", "Estimate for this run", (*columns, "US dollars"), tuple(rows), notes)


def _measure(questions: Iterable[Question], ks: Sequence[int], whole: Callable[[Question], str]) -> Iterator[_Lengths]:
    """Measure the prompts for questions without retrieving anything: chunks count with their average length."""
    known: dict[str, tuple[int, int, int]] = {}
    for question in questions:
        key = question.document_id
        if key not in known:
            lengths = [count_tokens(chunk) for chunk in chunks(question.document or "")]
            known[key] = count_tokens(whole(question)), len(lengths), sum(lengths)
        read, count, total = known[key]
        bare = count_tokens(prompts.PROMPTS[question.prompt] + question.question + "".join(question.choices))
        drafts = [bare + total * min(k, count) // max(count, 1) for k in ks]
        yield _Lengths(drafts, bare + read, bare + SECTIONS if read >= 2 * SECTIONS else None, bare)


def _calls(
    some: Sequence[tuple[Question, _Lengths]],
    choices: Choices,
    prices: tuple[StepPrice, StepPrice],
    judge: StepPrice | None,
) -> Iterator[_Calls]:
    """Yield the calls of each kind for questions of a data set."""
    chosen, lengths, (first, second) = set(choices.strategies), [each for _, each in some], prices
    options, others = choices.options, max(len(choices.searching) - 1, 0)
    kinds = bool({"rag", "self_route", "sections"} & chosen) + bool({*GRADED} & chosen)
    drafts = [tokens for each in lengths for tokens in each.drafts] * kinds
    drafts += [each.drafts[0] for each in lengths] * others
    sections = [each.sections for each in lengths if each.sections is not None] * choices.with_sections
    times = 1 + options.compare_based_only_on if "long_context" in chosen else int(choices.perhaps_whole)
    whole = [each.whole for each in lengths] * times
    bare = [each.bare for each in lengths] * options.drop_closed_book
    yield _Calls(("drafts", "draft tokens"), drafts, first)
    if choices.with_sections:
        yield _Calls(("sections", "section tokens"), sections, first)
    yield _Calls(("long contexts", "long-context tokens"), whole, second)
    yield _Calls((), bare, second)
    if judge:
        own = len(drafts) - len(lengths) * others
        answers = -(-(own + len(sections) + len(whole) + len(bare)) // len(some))
        sheets = [count_tokens(Sheet.of(question, []).prompt) for question, _ in some if answers_of(question)]
        yield _Calls(("judge calls", "judge tokens"), [each + answers * OUTPUT_TOKENS for each in sheets], judge)


def _dollars(calls: Iterable[_Calls]) -> float | None:
    costs = (one.price(StepUsage(tokens, OUTPUT_TOKENS)) for one in calls for tokens in one.lengths)
    total = sum(costs, Cost(Decimal(0)))
    return None if total.dollars is None else float(total.dollars)


def _notes(choices: Choices, *, judged: bool, unknown: str | None) -> Iterator[str]:
    yield f"Tokens are estimated from the texts, and each reply is assumed to have {OUTPUT_TOKENS}."
    if choices.perhaps_whole:
        yield "Long contexts are counted for every question; they are read only where the model declines."
    if choices.options.explain_declines:
        yield "Not counted: asking why drafts were declined, which takes at most as much as the drafts."
    if judged:
        yield "The judge is counted as if all answers differed; declines, which it is not asked about, make it cheaper."
    if kept := count_kept(choices.options.out):
        yield f"{kept} replies are kept from earlier runs and will not be paid for again, so the run may cost less."
    if unknown:
        yield f"The cost is not known: {unknown}"
    if choices.with_sections:
        yield (
            f"Sections are counted with {SECTIONS:,} tokens for every question whose document is at least twice as "
            "long. If a draft is sure, no sections are read."
        )


def _about_retrievers(choices: Choices, *, with_model: bool) -> Iterator[str]:
    """Yield what retrievers download, and what of them the estimate leaves out."""
    names, embeddings = choices.searching, choices.options.embeddings
    missing = [path for name in names for path in downloads(name, embeddings=embeddings)]
    if missing:
        models = " and ".join(dict.fromkeys(missing))
        yield f"The run downloads {models}, which this machine does not have; {WITHOUT_DOWNLOAD}."
    if summaries := [name for name in names if name in SUMMARIZED and with_model]:
        yield f"Not counted: the summaries for {' and '.join(summaries)}, which read each document about once."
    used = dict.fromkeys(embeddings if name in INDEXED else name for name in names)
    if paid := [name for name in used if is_of_provider(name)]:
        yield f"Not counted: {' and '.join(paid)}, which embed each document about once."
