"""Performs `selfroute questions`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from rich.console import Console

from selfroute.errors import ConfigurationError
from selfroute.usage.counts import StepUsage
from selfroute.usage.prices import PricedModel
from selfroute.usage.tokens import count_tokens
from selfroute_workbench.command.evaluation_options import Questions
from selfroute_workbench.command.models import load_models
from selfroute_workbench.command.reading import Sources
from selfroute_workbench.command.terminal import open_console, stage
from selfroute_workbench.evaluation.replies import Replies
from selfroute_workbench.evaluation.show import show_tables
from selfroute_workbench.evaluation.table import Cell, Table
from selfroute_workbench.evaluation.with_langchain import asker_with, room_for
from selfroute_workbench.evaluation.writing.files import save, save_review
from selfroute_workbench.evaluation.writing.prompts import CLOSED_BOOK, KINDS, Kind
from selfroute_workbench.evaluation.writing.writer import SPARE, Outcome, Writer, counts_of
from selfroute_workbench.evaluation.writing.written import Source

_QUESTION_TOKENS, _CHECK_TOKENS = 150, 20  # of a written question with its quotes, and of the reply to a check


def questions(options: Questions) -> bool:
    """Write questions about documents, or the page for those that are there.

    Returns:
        Whether questions were kept, nothing failed, and the cap was not reached.

    Raises:
        ConfigurationError: There is no model, a file cannot be read, or an option cannot be followed.
    """
    out, err = open_console(sys.stdout), open_console(sys.stderr)
    if options.review and not options.model:
        for path in options.files:
            if path.suffix != ".jsonl":
                msg = f"--review {path} shows a list of questions (.jsonl); to write one about documents, add --model"
                raise ConfigurationError(msg)
            out.print(f"Open {save_review(path)} in a browser.")
        return True
    counts = counts_of(options.number, options.unanswerable)
    texts = Sources(files=options.files, everything=True).read(again=True)
    sources = [Source(text.source, text.text) for text in texts]
    llm = _model(options)
    cap = None if options.max_cost is None else Decimal(str(options.max_cost))
    if options.dry_run:
        show_tables(out, [_estimate(_writer(options, llm, sources, Replies()), counts, sources)])
        return True
    folder = options.out.with_suffix(".replies")
    if options.out.exists() and not folder.exists():
        msg = f"--out {options.out} is there already, and another program wrote it: name another file"
        raise ConfigurationError(msg)
    with Replies(folder, max_cost=cap) as replies:
        writer = _writer(options, llm, sources, replies)
        try:
            with stage(err, "Writing questions", options.number) as advance:
                outcome = writer.write(counts, on_progress=advance)
        except KeyboardInterrupt:
            kept = replies.kept + replies.asked
            err.print(f"{kept} replies are kept in {folder}: run the same command again to go on.")
            raise
        _save(outcome, options, out=out)
        show_tables(out, [_table(outcome, counts)])
        err.print(replies.summary)
    return not (outcome.failed or outcome.stopped)


def _model(options: Questions) -> Any:
    models = load_models(options.model, base_url=options.base_url)
    if models is None:
        msg = "a language model has to write the questions: name one, for example --model openai:gpt-4o-mini"
        raise ConfigurationError(msg)
    return models.llm


def _writer(options: Questions, llm: Any, sources: Sequence[Source], replies: Replies) -> Writer:
    priced_as = PricedModel.parse("--priced-as", options.priced_as) if options.priced_as else None
    asker = asker_with(llm, replies, priced_as=priced_as)
    return Writer(asker, sources, room=room_for(llm, window=options.window), at_once=options.concurrency)


def _save(outcome: Outcome, options: Questions, *, out: Console) -> None:
    if not outcome.kept:
        out.print("No question was kept.")
        return
    try:
        save(outcome.kept, options.out)
    except OSError as error:
        msg = f"--out {options.out} cannot be written: {error.strerror}"
        raise ConfigurationError(msg) from error
    out.print(f"{len(outcome.kept)} questions are in {options.out}.")
    if options.review:
        out.print(f"Open {save_review(options.out)} in a browser.")


def _table(outcome: Outcome, counts: Mapping[Kind, int]) -> Table:
    rows: list[tuple[Cell, ...]] = [(kind, counts[kind], outcome.number_of(kind)) for kind in KINDS if counts[kind]]
    rows.append(("all", sum(counts.values()), len(outcome.kept)))
    reasons = Counter(outcome.dropped)
    errors = Counter(outcome.failed)
    notes = [f"Dropped: {number:,}, {reason}." for reason, number in reasons.most_common()]
    notes += [f"Failed: {number:,} calls: {error.rstrip('.')}." for error, number in errors.most_common()]
    if outcome.stopped:
        notes.append(f"It ended early: {outcome.stopped.rstrip('.')}.")
    elif len(outcome.kept) < sum(counts.values()):
        notes.append("Fewer than wanted came of four rounds: add documents, or ask for fewer.")
    notes.append("A model wrote these: look through them (--review) before you trust a figure.")
    return Table("questions", "Questions", ("kind", "wanted", "kept"), tuple(rows), tuple(notes))


def _estimate(writer: Writer, counts: Mapping[Kind, int], sources: Sequence[Source]) -> Table:
    """Estimate what the first round takes; more rounds follow if too many questions are dropped."""
    requests = writer.requests(counts, 0)
    written = [(count_tokens(writer.prompt(each, [])), _QUESTION_TOKENS * each.count) for each in requests]
    asked = sum(each.count for each in requests if each.kind != "unanswerable")
    checked = [(count_tokens(CLOSED_BOOK), _CHECK_TOKENS)] * asked
    wholes = [sum(map(count_tokens, writer.parts(each))) for each in sources]
    bare = sum(each.count for each in requests if each.kind == "unanswerable")
    checked += [(wholes[number % len(wholes)], _CHECK_TOKENS) for number in range(bare)]
    rows = []
    for name, calls in (("writing", written), ("checking", checked)):
        costs = [writer.price(StepUsage(*tokens)).dollars for tokens in calls]
        known = None if None in costs else float(sum(filter(None, costs)))
        rows.append((name, len(calls), sum(tokens for tokens, _ in calls), known))
    first = f"This is the first round, which asks for {SPARE:.2f} times what is wanted"
    notes = (f"{first}; up to three more replace what is dropped.",)
    return Table("estimate", "What it takes, about", ("", "calls", "input tokens", "dollars"), tuple(rows), notes)
