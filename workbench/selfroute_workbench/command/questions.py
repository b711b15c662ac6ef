"""Performs `selfroute questions`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path

from selfroute.errors import ConfigurationError
from selfroute.usage.prices import PricedModel
from selfroute_workbench.command.models import load_models
from selfroute_workbench.command.options import Options
from selfroute_workbench.command.reading import read_files
from selfroute_workbench.command.terminal import open_console, stage
from selfroute_workbench.evaluation.replies import Replies
from selfroute_workbench.evaluation.show import show_summary
from selfroute_workbench.evaluation.with_langchain import asker_with, room_for
from selfroute_workbench.evaluation.writing import Outcome, wanted_of, write
from selfroute_workbench.files import STANDARD_INPUT
from selfroute_workbench.private import write as write_file


def questions(options: Options) -> bool:
    """Write questions about documents; return whether some were kept, nothing failed, and the cap was not reached."""
    out, err, folder = open_console(sys.stdout), open_console(sys.stderr), options.out_file.with_suffix(".replies")
    models = load_models(options)  # what it needs is missing before anything is read or paid
    if models is None:
        msg = "a language model has to write the questions: name one, for example --model openai:gpt-5-mini"
        raise ConfigurationError(msg)
    if STANDARD_INPUT in options.files:
        msg = "the documents are read again later: save the standard input in a file, and name that"
        raise ConfigurationError(msg)
    if options.out_file.exists() and not folder.exists():
        msg = f"--out {options.out_file} is there already, and another program wrote it: name another file"
        raise ConfigurationError(msg)
    texts = {text.path: text.text for text in read_files(options.files)}
    wanted, cap = wanted_of(options.number, options.unanswerable), options.max_cost
    with Replies(folder, max_cost=None if cap is None else Decimal(str(cap))) as replies:
        priced_as = options.priced_as and PricedModel.parse("--priced-as", options.priced_as)
        asker = asker_with(models.llm, replies, priced_as=priced_as or None)
        room = room_for(models.llm, window=options.window)
        with stage(err, f"Writing questions; replies are kept in {folder}"):
            *_, outcome = write(asker, texts, wanted, room=room)
    if outcome.kept:
        _save(outcome, options.out_file, texts)
    out.print(f"{len(outcome.kept)} questions are in {options.out_file}." if outcome.kept else "No question was kept.")
    show_summary(out, _said(outcome, wanted))
    err.print(replies.summary)
    return not (outcome.failed or outcome.stopped)


def _save(outcome: Outcome, path: Path, texts: Mapping[str, str]) -> None:
    """Write the questions, so that nobody ever reads half of the file; those below its folder relative to it."""
    folder, lines = path.parent.resolve(), list[str]()
    for number, each in enumerate(outcome.kept, 1):
        document = Path(each.document)
        row = {
            "id": str(number),
            "question": each.question,
            "answers": [each.answer] if each.answer else [],
            "kind": each.kind,
            "evidence": [texts[each.document][start:end] for start, end in each.evidence],
            "document_file": str(document.relative_to(folder) if document.is_relative_to(folder) else document),
        }
        lines.append(f"{json.dumps(row, ensure_ascii=False)}\n")
    try:
        write_file(path.with_suffix(".part"), "".join(lines), errors="replace")
        path.with_suffix(".part").replace(path)
    except OSError as error:
        msg = f"--out {path} cannot be written: {error.strerror}"
        raise ConfigurationError(msg) from error


def _said(outcome: Outcome, wanted: Mapping[str, int]) -> Iterator[str]:
    yield ", ".join(f"{kind} {outcome.count(kind)} of {number}" for kind, number in wanted.items() if number)
    yield from (f"Dropped: {number:,}, {reason}." for reason, number in Counter(outcome.dropped).most_common())
    yield from (f"Failed: {number:,} calls: {error.rstrip('.')}." for error, number in Counter(outcome.failed).items())
    if outcome.stopped:
        yield f"It ended early: {outcome.stopped.rstrip('.')}."
    elif len(outcome.kept) < sum(wanted.values()):
        yield "Fewer than wanted came of four rounds: add documents, or ask for fewer."
    yield "A model wrote these: read them before you trust a figure."
