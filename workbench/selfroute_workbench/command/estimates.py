"""Estimates the tokens and the cost of an evaluation before it starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cache

from selfroute.calls.settings import Sections
from selfroute.effects import Route
from selfroute.prompts import RAG
from selfroute.usage.counts import FREE, Cost, StepUsage
from selfroute.usage.prices import PricedModel, cost_of
from selfroute.usage.tokens import count_tokens
from selfroute_workbench.command.evaluation_options import Evaluate
from selfroute_workbench.demo.splitting import CHUNK_OVERLAP, CHUNK_SIZE
from selfroute_workbench.evaluation.judge import ModelJudge
from selfroute_workbench.evaluation.judging import Sheet, answers_of
from selfroute_workbench.evaluation.looks import ROUTES, SECTIONS, Step
from selfroute_workbench.evaluation.questions import Question
from selfroute_workbench.evaluation.replies_file import count_kept
from selfroute_workbench.evaluation.runs import with_choices
from selfroute_workbench.evaluation.spending import OUTPUT_TOKENS
from selfroute_workbench.evaluation.table import Cell, Table

_TITLES: Mapping[Route | str, str] = {"rag": "drafts", "sections": "sections", "long_context": "whole documents"}


def estimate(
    questions: Sequence[Question],
    steps: Sequence[Step],
    options: Evaluate,
    *,
    prices: Mapping[Route, PricedModel],
    judge: ModelJudge | None,
) -> Table:
    """Estimate the tokens and the cost of a run; each reply counts once.

    Args:
        questions: The questions.
        steps: The looks that are asked for.
        options: The options of the run.
        prices: The models that the steps are priced as.
        judge: The judge; None without one.
    """
    read = cache(count_tokens)
    lengths: dict[str, list[int]] = {}
    bare = count_tokens(RAG)
    for question in questions:
        whole, asked = read(question.document or ""), bare + count_tokens(with_choices(question))
        passages = min(options.k * (CHUNK_SIZE - CHUNK_OVERLAP // 2) // 4, whole)
        tokens = {"rag": passages, "sections": _sections_of(whole, options.sections), "long_context": whole}
        for step in steps:
            if (of_step := tokens[ROUTES[step]]) is not None:
                lengths.setdefault(ROUTES[step], []).append(asked + of_step)
    rows: list[tuple[Cell, ...]] = []
    total = FREE
    for route, each in lengths.items():
        cost = sum((cost_of(prices[route], StepUsage(tokens, OUTPUT_TOKENS)) for tokens in each), FREE)  # type: ignore[index]
        rows.append((_TITLES[route], len(each), sum(each), _dollars(cost)))
        total += cost
    if judge:
        sheets = [
            count_tokens(Sheet.of(one, []).prompt) + len(steps) * OUTPUT_TOKENS for one in questions if answers_of(one)
        ]
        cost = sum((judge.price(StepUsage(tokens, OUTPUT_TOKENS)) for tokens in sheets), FREE)
        rows.append(("judge", len(sheets), sum(sheets), _dollars(cost)))
        total += cost
    sums = (sum(int(row[place] or 0) for row in rows) for place in (1, 2))
    rows.append(("all", *sums, _dollars(total)))
    notes = [f"Tokens are estimated from the texts, and each reply is assumed to have {OUTPUT_TOKENS}."]
    if "sections" in lengths:
        notes.append("Sections are counted for every question; if a draft is sure, none are read.")
    if kept := count_kept(options.out):
        notes.append(f"{kept} replies are kept from earlier runs and will not be paid for again.")
    if total.dollars is None:
        notes.append(f"The cost is not known: {total.unknown}")
    title = f"Estimate for {len(questions):,} questions"
    return Table("estimate", title, ("", "calls", "input tokens", "US dollars"), tuple(rows), tuple(notes))


def _sections_of(whole: int, sections: Sections) -> int | None:
    """Return the tokens of sections of a document; None if they are more than half of it, and so are not read."""
    asked = sections or SECTIONS
    tokens = asked[0] if isinstance(asked, tuple) else asked
    return tokens if whole >= 2 * tokens else None


def _dollars(cost: Cost) -> str | None:
    return None if cost.dollars is None else f"{Decimal(cost.dollars):.4f}"
