"""Estimates the tokens and the cost of a run before it starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby

from selfroute.evaluation import prompts
from selfroute.evaluation.asking.budget import OUTPUT_TOKENS
from selfroute.evaluation.asking.chunks import chunks
from selfroute.evaluation.asking.retrieval import INDEXED, SUMMARIZED, WITHOUT_DOWNLOAD, downloads, is_of_provider
from selfroute.evaluation.judging import Sheet, answers_of
from selfroute.evaluation.questions import Question
from selfroute.evaluation.records import GRADED, SECTIONS, WITH_SECTIONS, Strategy
from selfroute.evaluation.table import Cell, Table
from selfroute.usage.counts import Cost, StepUsage
from selfroute.usage.tokens import count_tokens

_ABOUT_SECTIONS = (
    f"Sections are counted with {SECTIONS:,} tokens for every question whose document is at least twice as long. If a "
    "draft is sure, no sections are read."
)
StepPrice = Callable[[StepUsage], Cost]


@dataclass(frozen=True, slots=True)
class PromptLengths:
    """The lengths of the prompts for a question, in estimated tokens.

    Attributes:
        drafts: The prompts of the first step, for each k.
        whole: The prompt of the second step.
        sections: The prompt with sections, as long as they may be; None where that is more than half of the document.
        bare: The prompt without any text.
    """

    drafts: tuple[int, ...]
    whole: int
    sections: int | None
    bare: int


def prompt_lengths(
    questions: Iterable[Question], *, ks: Sequence[int], whole: Callable[[Question], str]
) -> list[PromptLengths]:
    """Measure the prompts for questions without retrieving anything: chunks count with their average length.

    Args:
        questions: The questions.
        ks: How many passages to retrieve.
        whole: Returns a question's document as the model reads it.
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
        sections = bare + SECTIONS if read >= 2 * SECTIONS else None
        found.append(PromptLengths(drafts, bare + read, sections, bare))
    return found


def estimate(  # noqa: PLR0913 - each changes the estimate
    questions: Sequence[Question],
    lengths: Sequence[PromptLengths],
    *,
    strategies: Sequence[Strategy],
    closed_book: bool,
    based_only_on: bool,
    explain_declines: bool,
    prices: tuple[StepPrice, StepPrice],
    judge: StepPrice | None = None,
    retrievers: int = 1,
    kept: int,
) -> Table:
    """Estimate the tokens and the cost of a run.

    Each reply counts once: strategies share the drafts of `rag` or of `graded`, and the replies of `long_context`.

    Args:
        questions: The questions, those of a data set together.
        lengths: The lengths that `prompt_lengths` returned.
        strategies: The strategies.
        closed_book: Whether each question is asked without text, too.
        based_only_on: Whether documents are read with a second prompt, too.
        explain_declines: Whether the model is asked why it declined.
        prices: Return the cost of a call of the first step and of the second.
        judge: Returns the cost of a call of the judge; None without one.
        retrievers: How many retrievers there are; with each but the first, `rag` is asked once more at the first k.
        kept: How many replies are kept from earlier runs.
    """
    chosen = set(strategies)
    drafts = bool({"rag", "self_route", "sections"} & chosen) + bool({*GRADED} & chosen)
    with_sections = len({*WITH_SECTIONS} & chosen)
    whole = "long_context" in strategies
    maybe = not whole and bool(chosen - {"rag"})
    rows: list[tuple[Cell, ...]] = []
    pairs = zip(questions, lengths, strict=True)
    for dataset, group in groupby(pairs, key=lambda pair: pair[0].dataset):
        group_ = list(group)
        some = [each for _, each in group_]
        first = [tokens for each in some for tokens in each.drafts] * drafts
        again = [each.drafts[0] for each in some] * (retrievers - 1)
        more = [each.sections for each in some if each.sections is not None] * with_sections
        second = [each.whole for each in some for _ in range(1 + based_only_on)] if whole else []
        second = second or ([each.whole for each in some] if maybe else [])
        bare = [each.bare for each in some] if closed_book else []
        cost = _total([*first, *again, *more], prices[0]) + _total([*second, *bare], prices[1])
        counts = [
            len(some),
            len(first) + len(again),
            sum(first) + sum(again),
            *((len(more), sum(more)) if with_sections else ()),
        ]
        counts += [len(second), sum(second)]
        if judge:
            answers = -(-(len(first) + len(more) + len(second) + len(bare)) // len(some))
            judged = [_judged(question, answers) for question, _ in group_ if answers_of(question)]
            cost += _total(judged, judge)
            counts += [len(judged), sum(judged)]
        rows.append((dataset, *counts, _dollars(cost)))
    costs = [row[-1] for row in rows]
    known = [float(cost) for cost in costs if isinstance(cost, float)]
    total: Cell = sum(known) if len(known) == len(costs) else None
    sums = [sum(int(row[place] or 0) for row in rows) for place in range(1, len(rows[0]) - 1)]
    rows.append(("all", *sums, total))
    tried = (price(StepUsage(1, 1)).unknown for price in (*prices, *((judge,) if judge else ())))
    unknown = next(filter(None, tried), None) if total is None else None
    columns: tuple[str, ...] = ("data set", "questions", "drafts", "draft tokens")
    columns += ("sections", "section tokens") if with_sections else ()
    columns += ("long contexts", "long-context tokens")
    return Table(
        "estimate",
        "Estimate for this run",
        (*columns, *(("judge calls", "judge tokens") if judge else ()), "US dollars"),
        tuple(rows),
        (
            *_notes(maybe=maybe, explain=explain_declines, judged=judge is not None, kept=kept, unknown=unknown),
            *((_ABOUT_SECTIONS,) if with_sections else ()),
        ),
    )


def about_retrievers(names: Sequence[str], *, embeddings: str, with_model: bool) -> Iterable[str]:
    """Yield what retrievers download, and what of them an estimate leaves out.

    Args:
        names: The retrievers.
        embeddings: What those that index compare by.
        with_model: Whether a model writes their summaries.

    Raises:
        ConfigurationError: There is no retriever of such a name.
    """
    missing = [path for name in names for path in downloads(name, embeddings=embeddings)]
    if missing:
        models = " and ".join(dict.fromkeys(missing))
        yield f"The run downloads {models}, which this machine does not have; {WITHOUT_DOWNLOAD}."
    if summaries := [name for name in names if name in SUMMARIZED and with_model]:
        yield f"Not counted: the summaries for {' and '.join(summaries)}, which read each document about once."
    used = dict.fromkeys(embeddings if name in INDEXED else name for name in names)
    if paid := [name for name in used if is_of_provider(name)]:
        yield f"Not counted: {' and '.join(paid)}, which embed each document about once."


def _judged(question: Question, answers: int) -> int:
    """Return the length of a judge's prompt with so many answers, in tokens."""
    return count_tokens(Sheet.of(question, []).prompt) + answers * OUTPUT_TOKENS


def _total(prompts_: Sequence[int], price: StepPrice) -> Cost:
    return sum((price(StepUsage(tokens, OUTPUT_TOKENS)) for tokens in prompts_), Cost(Decimal(0)))


def _dollars(cost: Cost) -> float | None:
    return None if cost.dollars is None else float(cost.dollars)


def _notes(*, maybe: bool, explain: bool, judged: bool, kept: int, unknown: str | None) -> Iterable[str]:
    yield f"Tokens are estimated from the texts, and each reply is assumed to have {OUTPUT_TOKENS}."
    if maybe:
        yield "Long contexts are counted for every question; they are read only where the model declines."
    if explain:
        yield "Not counted: asking why drafts were declined, which takes at most as much as the drafts."
    if judged:
        yield "The judge is counted as if all answers differed; declines, which it is not asked about, make it cheaper."
    if kept:
        yield f"{kept} replies are kept from earlier runs and will not be paid for again, so the run may cost less."
    if unknown:
        yield f"The cost is not known: {unknown}"
