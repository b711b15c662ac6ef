"""The bodies of `selfroute batch export` and `selfroute batch import`.

The chain runs as ever, with the provider's own client; but the client is answered from the results that were imported.
A request without a result is what the next file asks for.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selfroute.command import answers, batch_screen, run
from selfroute.command.asking import Options, open_files, print_json
from selfroute.command.batch_book import Book, FromBook
from selfroute.command.batch_job import Item, Job, Setup, digest_in, read_questions
from selfroute.command.batch_requests import RequestFiles
from selfroute.command.batch_results import read_results
from selfroute.command.reading import Sources
from selfroute.command.steering import Steering
from selfroute.command.terminal import open_console, stage
from selfroute.command.texts import read_text
from selfroute.command.with_langchain import LangChainSession
from selfroute.error_text import one_line
from selfroute.usage.ledger import Ledger
from selfroute.usage.prices import at_batch_prices


def begin(folder: Path, *, sources: Sources, questions: Path, **options: Any) -> Job:
    """Begin a job.

    Args:
        folder: Its folder.
        sources: The user's documents.
        questions: The file of questions.
        options: Other fields of `Setup`; those that are None have their defaults.
    """
    given = {name: value for name, value in options.items() if value is not None}
    texts = sources.read(again=True)
    sources.check_characters(sum(len(text.text) for text in texts))
    store = str(sources.store.resolve()) if sources.store else None
    setup = Setup(files={text.source: text.key for text in texts}, store=store, **given)
    return Job.begin(folder, setup, read_questions(questions))


def export(job: Job, *, again: bool, as_json: bool) -> None:
    """Write what is to be asked next.

    Args:
        job: The job.
        again: Whether to ask for those, too, whose latest request has no result yet.
        as_json: Whether to print JSON only.
    """
    wanted = {"failed", "next", *(["waiting"] if again else [])}
    items = sorted((item for item in job.items if item.status in wanted or job.can_judge(item)), key=_group)
    with (
        RequestFiles(job.folder) as files,
        _replaying(job, "Preparing the requests", items, as_json=as_json) as replays,
    ):
        for item, book in replays:
            if book.asked and item.answer is None:
                item.request, item.error = job.next_id(book.asked.digest), None
                files.add(item.request, book.asked)
    job.save()
    written = files.told()
    if as_json:
        print_json({"files": written, **_counts(job)})
    else:
        batch_screen.show_files(open_console(sys.stdout), written, _counts(job), folder=job.folder)


def import_(job: Job, *, files: Sequence[Path], as_json: bool) -> bool:
    """Take the results of batches, judge the replies, and write the answers.

    Args:
        job: The job.
        files: The providers' files.
        as_json: Whether to print JSON only.

    Returns:
        Whether all of them could be read to the end.
    """
    read = {str(path): read_results(path) for path in files}
    new, taken = job.add([result for one in read.values() for result in one.results])
    here = [item for item in job.items if item.request in new or job.can_judge(item)]
    changed = 0
    with _replaying(job, "Judging the replies", here, as_json=as_json) as replays:
        for item, book in replays:
            if book.asks:
                changed += digest_in(item.request or "") not in book.seen
                item.request = None
    job.save()
    ledger = Ledger.read(item.outcome for item in job.items if item.outcome)
    unreadable = {path: one.unreadable for path, one in read.items() if one.unreadable}
    cut_off = [path for path, one in read.items() if one.cut_off]
    told = {"results": taken, "unreadable_lines": unreadable, "cut_off": cut_off, "changed": changed, **_counts(job)}
    if as_json:
        print_json({**told, "answers": str(job.answers), "ledger": ledger.to_dict()})
    else:
        out = open_console(sys.stdout)
        batch_screen.show_results(out, told, folder=job.folder)
        if told["answered"] or told["failed"]:
            answers.show_ledger(out, ledger, models=run.Models(None, None, job.setup.model))
    return not (unreadable or cut_off)


@contextmanager
def _replaying(job: Job, title: str, items: Sequence[Item], *, as_json: bool) -> Iterator[Iterator[tuple[Item, Book]]]:
    """Go on with questions as far as the results go; yields each with the book in which that was noted."""
    if not items:
        yield iter(())
        return
    book, setup = Book(job.results), job.setup
    sections = tuple(setup.sections) if isinstance(setup.sections, Sequence) else setup.sections
    framework, steering = FromBook(book), Steering(graded=setup.graded, sections=sections)
    options = Options(
        framework, setup.model, setup.long_context_model, None, setup.k, setup.embeddings, as_json, None, steering
    )
    files = [Path(name) for name in setup.files]
    sources = Sources(files=files, store=Path(setup.store) if setup.store else None, everything=True)
    questions = [item.question["question"] for item in items]
    setup.check_texts(map(read_text, files))  # before they are indexed
    err = open_console(sys.stderr)
    with (
        open_files(options, sources, questions=questions) as (_, library, models),
        stage(err, title, len(items)) as advance,
        at_batch_prices(),
    ):

        def replays() -> Iterator[tuple[Item, Book]]:
            texts = [*library.texts.values()]
            chosen = {"llm": models.llm, "long_context_llm": models.long_context_llm, "k": setup.k}
            for item in items:
                # A chain of its own: what one learns from a question may change what it asks for the next.
                session = framework.index.replay(texts, **chosen, steering=steering, retrieved=item.retrieved)
                _go_on(item, session, book, names={source: source for source in library.texts})
                yield item, book
                advance(1)

        yield replays()


def _go_on(item: Item, session: LangChainSession, book: Book, *, names: Mapping[str, str]) -> None:
    """Go on with a question: to its answer, to a request that has no result yet, or to an error."""
    book.open()
    item.error = None
    try:
        if item.row is None:
            item.row = session.first_step(item.question["question"])
        output = session.second_step(item.row)
    except Exception as error:  # noqa: BLE001 - the providers' clients have no error in common
        if not book.asks:
            item.error = f"{type(error).__name__}: {one_line(error)}"
        return
    item.answer = run.output_as_json(output, names)
    item.row, item.request, item.retrieved = None, None, {}


def _group(item: Item) -> tuple[bool, str]:
    """Return by what requests are put in order: those on one document follow one another, as caches want it."""
    sources = item.row["sources"] if item.row else []
    return item.row is not None, str(sources[0]) if sources else ""


def _counts(job: Job) -> dict[str, int]:
    """Return how many questions are answered, failed, wait for a result, or are to be asked next."""
    found = Counter(item.status for item in job.items)
    return {status: found[status] for status in ("answered", "failed", "waiting", "next")}
