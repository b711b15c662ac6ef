"""Performs `selfroute batch export` and `selfroute batch import`.

The chain runs as ever, with the provider's own client; but the client is answered from the results that were imported.
A request without a result is what the next file asks for.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from selfroute.error_text import one_line
from selfroute.errors import ConfigurationError
from selfroute.usage.ledger import Ledger
from selfroute.usage.prices import at_batch_prices
from selfroute_workbench.command import answers
from selfroute_workbench.command.asking import check_questions, open_library, print_json
from selfroute_workbench.command.batch_clients import Book, models_from
from selfroute_workbench.command.batch_files import RequestFiles
from selfroute_workbench.command.batch_job import Item, Job, Setup, read_questions
from selfroute_workbench.command.batch_options import Export, Import
from selfroute_workbench.command.batch_results import digest_of, read_results
from selfroute_workbench.command.models import Models
from selfroute_workbench.command.reading import Sources
from selfroute_workbench.command.sessions import Session
from selfroute_workbench.command.terminal import open_console, stage
from selfroute_workbench.command.texts import Text, read_text
from selfroute_workbench.command.totals import show_ledger

_WHAT_NEXT = {
    "openai": "upload each file with the purpose batch, and create a batch of it for its endpoint",
    "anthropic": "create a message batch of the lines of each file",
    "google_genai": "upload each file, and create a batch job of it with its model",
}


def export(options: Export) -> None:
    """Write what is to be asked next, and first begin the job if the options say so."""
    job = _begin_or_open(options)
    wanted = {"failed", "next", *(["waiting"] if options.again else [])}
    items = sorted((item for item in job.items if item.status in wanted or job.can_judge(item)), key=_group)
    with RequestFiles(job.folder) as files:
        for item, book in _replay(job, items, title="Preparing the requests"):
            if book.asked and item.answer is None:
                item.request, item.error = job.next_id(book.asked.digest), None
                files.add(item.request, book.asked)
    job.save()
    if options.as_json:
        print_json({"files": files.written(), **_counts(job)})
    else:
        _show_files(open_console(sys.stdout), files.written(), _counts(job), folder=job.folder)


def _begin_or_open(options: Export) -> Job:
    chosen = ("model", "long_context_model", "k", "embeddings", "sections")
    given = {name: value for name in chosen if (value := getattr(options, name)) is not None}
    given |= {"graded": True} if options.graded else {}
    if not (options.files or options.questions or options.store or given):
        return Job.open(options.job)
    if not (options.files and options.questions and options.model):
        msg = "a job begins with FILE..., --questions and --model; it continues with --job alone"
        raise ConfigurationError(msg)
    sources = Sources(files=options.files, everything=options.everything)
    texts = sources.read(again=True)
    sources.check_characters(sum(len(text.text) for text in texts))
    store = str(options.store.resolve()) if options.store else None
    setup = Setup(files={text.source: text.key for text in texts}, store=store, **given)
    return Job.begin(options.job, setup, read_questions(options.questions))


def import_results(options: Import) -> bool:
    """Take the results of batches, judge the replies, and write the answers.

    Returns:
        Whether all files could be read to the end.
    """
    job = Job.open(options.job)
    read = {str(path): read_results(path) for path in options.results}
    new, taken = job.add([result for one in read.values() for result in one.results])
    here = [item for item in job.items if item.request in new or job.can_judge(item)]
    changed = 0
    for item, book in _replay(job, here, title="Judging the replies"):
        if book.asks:
            changed += digest_of(item.request or "") not in book.seen
            item.request = None
    job.save()
    ledger = Ledger.read(item.outcome for item in job.items if item.outcome)
    unreadable = {path: one.unreadable for path, one in read.items() if one.unreadable}
    cut_off = [path for path, one in read.items() if one.cut_off]
    record = {"results": taken, "unreadable_lines": unreadable, "cut_off": cut_off, "changed": changed, **_counts(job)}
    if options.as_json:
        print_json({**record, "answers": str(job.answers), "ledger": ledger.to_dict()})
    else:
        out = open_console(sys.stdout)
        _show_results(out, record, folder=job.folder)
        if record["answered"] or record["failed"]:
            show_ledger(out, ledger, models=Models(None, None, job.setup.model))
    return not (unreadable or cut_off)


def _replay(job: Job, items: Sequence[Item], *, title: str) -> Iterator[tuple[Item, Book]]:
    """Go on with questions as far as the results go; yields each with the book in which that was noted."""
    if not items:
        return
    book, setup, err = Book(job.results), job.setup, open_console(sys.stderr)
    files = [Path(name) for name in setup.files]
    setup.check_texts(map(read_text, files))  # before they are indexed
    check_questions([item.question["question"] for item in items])
    sources = Sources(files=files, everything=True)
    texts, models = sources.read(), models_from(book, setup.model, setup.long_context_model)
    store = Path(setup.store) if setup.store else None
    library = open_library(texts, sources, embeddings=setup.embeddings, store=store)
    options: dict[str, Any] = {
        "answerability": "graded" if setup.graded else "text",
        "sections": tuple(setup.sections) if isinstance(setup.sections, Sequence) else setup.sections,
    }
    with stage(err, title, len(items)) as advance, at_batch_prices():
        for item in items:
            # A session for each: what a chain learns from a question may change what it asks for the next.
            session = Session(library, models, k=setup.k, retrieved=item.retrieved, **options)
            _go_on(item, session, book, library.texts)
            yield item, book
            advance(1)


def _go_on(item: Item, session: Session, book: Book, texts: Mapping[str, Text]) -> None:
    """Go on with a question: to its answer, to a request that has no result yet, or to an error."""
    book.open()
    item.error = None
    try:
        if item.row is None:
            item.row = session.chain.first_step.invoke(item.question["question"])
        output = session.output(session.chain.second_step.invoke(item.row))
    except Exception as error:  # noqa: BLE001 - the providers' clients have no error in common
        if not book.asks:
            item.error = f"{type(error).__name__}: {one_line(error)}"
        return
    item.answer = answers.as_json(output, texts)
    item.row, item.request, item.retrieved = None, None, []


def _group(item: Item) -> tuple[bool, str]:
    """Return the place of a question: those on one document follow one another, as prompt caches want it."""
    sources = item.row["sources"] if item.row else []
    return item.row is not None, str(sources[0]) if sources else ""


def _counts(job: Job) -> dict[str, int]:
    """Return how many questions are answered, failed, wait for a result, or are to be asked next."""
    found = Counter(item.status for item in job.items)
    return {status: found[status] for status in ("answered", "failed", "waiting", "next")}


def _show_files(
    console: Console, files: Sequence[Mapping[str, Any]], counts: Mapping[str, int], *, folder: Path
) -> None:
    """Say which files were written."""
    for one in files:
        console.print(f"{one['file']}: {_number(one['requests'], 'request')} to {one['model']} ({one['endpoint']})")
    _show_counts(console, counts, folder)
    if files:
        for provider in dict.fromkeys(one["model"].partition(":")[0] for one in files):
            console.print(f"Next, with {provider}: {_WHAT_NEXT[provider]}.")
        console.print(f"When the results are there: selfroute batch import RESULTS.jsonl --job {folder}")
    elif counts["waiting"]:
        console.print(
            "Nothing is written: the results of the earlier files are still to be imported; if they will never come, "
            f"ask again: selfroute batch export --again --job {folder}"
        )
    elif not counts["failed"]:
        console.print("Nothing is written: all questions are answered.")


def _show_results(console: Console, record: Mapping[str, Any], *, folder: Path) -> None:
    """Say what was read."""
    found = record["results"]
    console.print(
        f"Results: {_number(found['replies'], 'reply', 'replies')}, {_number(found['errors'], 'error')}, "
        f"{found['known']} imported before"
    )
    if found["other_jobs"]:
        console.print(f"Left out: {_number(found['other_jobs'], 'result')} of other requests than this job's")
    for path, lines in record["unreadable_lines"].items():
        console.print(f"Left out: {_number(len(lines), 'line')} of {path} that cannot be read, first line {lines[0]}")
    for path in record["cut_off"]:
        console.print(f"{path} is cut off in its last line: download it again, and import it again")
    if record["changed"]:
        console.print(
            f"{_number(record['changed'], 'question')} would be asked in other words than were exported, as "
            "selfroute or another package has changed since; the next export asks again"
        )
    _show_counts(console, record, folder)
    if record["next"] or record["failed"]:
        console.print(f"Next: selfroute batch export --job {folder}")


def _show_counts(console: Console, counts: Mapping[str, int], folder: Path) -> None:
    names = {"answered": "answered", "failed": "failed", "waiting": "waiting for results", "next": "to be asked next"}
    some = (f"{counts[name]} {words}" for name, words in names.items() if counts[name])
    console.print(f"Questions: {', '.join(some)}")
    if counts["answered"] or counts["failed"]:
        console.print(f"Answers{' and errors' if counts['failed'] else ''}: {folder / 'answers.jsonl'}")


def _number(count: int, one: str, more: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else more or f'{one}s'}"
