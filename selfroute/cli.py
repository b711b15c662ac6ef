"""The `selfroute` command: a demo that needs no key, questions to your own files, and evaluations.

Exit codes: 0 done; 1 an error on the way (the provider, a missing package), or what `check` found; 2 an error in the
call (a file, an option, a model's name or key); 130 interrupted. Errors are one line on stderr.
"""
# ruff: noqa: FBT001, FBT002, PLR0913, PLR0917, PLC0415
# typer reads the options from the signatures; heavy modules are imported when a command runs

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

from selfroute import __version__
from selfroute.errors import ConfigurationError, InputError, SelfRouteError

_INSTALL = 'pip install "selfroute[cli]"'
_EVALUATE = 'pip install "selfroute[evaluate]"'

try:
    import typer
    from typer.core import TyperCommand

    from selfroute.command.options import (
        FILES,
        Asking,
        BaseUrl,
        EmbeddingModel,
        Everything,
        Framework,
        Graded,
        Json,
        K,
        LongContextModel,
        Model,
        PricedAs,
        Reader,
        SectionTokens,
        Store,
        asking,
    )
except ModuleNotFoundError:
    # The console script imports this module first: anything else would show its user a traceback.
    sys.exit(f"selfroute: the command needs the package typer: {_INSTALL}")

_MODEL = re.compile(r"[\w-]+:(?![\\/])")
"""How `provider:name` begins; C:\\questions.jsonl is a file."""

app = typer.Typer(name="selfroute", add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"selfroute {__version__}")
        raise typer.Exit


@app.callback()
def _selfroute(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version")
    ] = False,
) -> None:
    """Answer from retrieved passages; read whole documents only when the model declines."""


@app.command()
def demo(
    framework: Framework = "langchain",
    model: Model = None,
    long_context_model: LongContextModel = None,
    base_url: BaseUrl = None,
    k: K = 5,
    limit: Annotated[int | None, typer.Option(min=1, help="Ask only so many questions, spread evenly")] = None,
    embeddings: EmbeddingModel = None,
    as_json: Json = False,
    priced_as: PricedAs = None,
    graded: Graded = False,
    sections: SectionTokens = None,
    reader: Reader = False,
) -> None:
    """Answer the questions that come with selfroute from the documents that come with it.

    Without --model, recorded replies of a language model answer, and the strategies are compared.
    """
    with _errors_on_one_line():
        with _starting():
            from selfroute.command import demo as command
            from selfroute.command import loading
            from selfroute.command.asking import Options
            from selfroute.command.steering import Steering

            host = loading.load(framework)
        steering = Steering(graded=graded, sections=sections)
        options = Options(host, model, long_context_model, base_url, k, embeddings, as_json, priced_as, steering)
        command.demo(options, limit=limit, reader=reader)


@app.command()
@asking
def ask(
    asked: Asking,
    question: Annotated[list[str], typer.Option("--question", "-q", help="A question; repeat the option for more")],
    show_passages: Annotated[bool, typer.Option(help="Print the retrieved passages")] = True,
) -> None:
    """Answer questions from your own files."""
    with _errors_on_one_line():
        with _starting():
            from selfroute.command import asking as command

            options, sources = asked.load()
        command.ask(options, sources=sources, questions=question, passages=show_passages)


@app.command()
@asking
def chat(asked: Asking) -> None:
    """Talk about your own files: a question may follow up on earlier ones.

    Without a terminal, each line of the standard input is a question.
    """
    with _errors_on_one_line():
        with _starting():
            from selfroute.command import chatting as command

            options, sources = asked.load()
        if not command.chat(options, sources=sources):
            raise typer.Exit(1)


@app.command()
@asking
def check(
    asked: Asking,
    question: Annotated[str | None, typer.Option("--question", "-q", help="A question to retrieve for")] = None,
) -> None:
    """Try what `ask` would use, without asking a model; exit with 1 if something has to be changed."""
    with _errors_on_one_line():
        with _starting():
            from selfroute.command import checking as command

            options, sources = asked.load()
        if not command.check(options, sources=sources, question=question):
            raise typer.Exit(1)


class _JudgeByItself(TyperCommand):
    """A command whose option `--judge` may stand without a value, which typer does not know."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give `--judge` an empty value where no `provider:name` follows."""
        following = [*args[1:], ""]
        alone = (each == "--judge" and not _MODEL.match(after) for each, after in zip(args, following, strict=True))
        given = ["--judge=" if bare else each for each, bare in zip(args, alone, strict=True)]
        parsed: list[str] = super().parse_args(ctx, given)
        return parsed


@app.command(cls=_JudgeByItself)
def evaluate(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA...",
            help="Data sets by name (narrativeqa, en.qa, passkey, ..., demo), or JSONL files of your own",
        ),
    ],
    model: Model = None,
    reader: Reader = False,
    long_context_model: LongContextModel = None,
    base_url: BaseUrl = None,
    priced_as: PricedAs = None,
    long_context_priced_as: PricedAs = None,
    temperature: Annotated[float | None, typer.Option(help="The model's temperature [default: the provider's]")] = None,
    strategies: Annotated[
        str | None,
        typer.Option(
            help="The strategies to compare, separated by commas; also sections, graded, graded_sections, or all of "
            "them [default: rag,long_context,self_route]"
        ),
    ] = None,
    k: Annotated[
        str, typer.Option("--k", help="How many passages to retrieve; several numbers, such as 1,5,10, give a curve")
    ] = "5",
    sweep: Annotated[
        str | None, typer.Option(metavar="k=1,3,5,10", help="The numbers of passages to try, in place of --k")
    ] = None,
    retriever: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="contriever, dragon, bm25, window, tree, raptor, provider:name, or a sentence-transformers model",
        ),
    ] = "contriever",
    embeddings: Annotated[
        str, typer.Option(metavar="NAME", help="What the retrievers window, tree and raptor compare by")
    ] = "all-MiniLM-L6-v2",
    order: Annotated[
        Literal["score", "document"], typer.Option(help="Passages nearest first, or in the document's order")
    ] = "score",
    window: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="The model's window in tokens; longer documents are cut in the middle [default: what the model says]",
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Ask only so many questions of each data set, spread evenly")
    ] = None,
    data_folder: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder with LongBench and InfiniteBench [default: download them]"),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder for replies and results")] = Path("evaluation"),
    concurrency: Annotated[int, typer.Option(min=1, help="How many questions are asked at a time")] = 4,
    max_cost: Annotated[
        float | None, typer.Option(min=0, metavar="USD", help="Stop before the cost could exceed this")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only estimate the tokens and the cost")] = False,
    drop_closed_book: Annotated[
        bool,
        typer.Option(
            "--drop-closed-book",
            help="Show the scores also without the questions that the model answers from memory (Table 5)",
        ),
    ] = False,
    explain_declines: Annotated[
        bool, typer.Option("--explain-declines", help="Ask the model why it declined (Figure 4)")
    ] = False,
    compare_based_only_on: Annotated[
        bool, typer.Option("--compare-based-only-on", help='Also read with "based only on the passage" (Table 4)')
    ] = False,
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="[PROVIDER:NAME]",
            help="Ask a model whether the answers say what the references say; without a name, the one for documents",
        ),
    ] = None,
    judge_base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="The judge's server [default: the model's, for its provider]")
    ] = None,
    judge_priced_as: PricedAs = None,
    grades: Annotated[
        Path | None,
        typer.Option(metavar="JSONL", help="Grades of your own: shows how far the judge agrees with them"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare RAG, long context and Self-Route on questions with known answers.

    The set-up is the paper's: its prompts, chunks of 300 words, 5 passages. Every reply is kept: after an interruption,
    run the same command again to go on. For the data set demo, recorded replies to the default prompts are evaluated,
    unless there is a --model or --reader.
    """
    with _errors_on_one_line(_EVALUATE):
        with _starting():
            from selfroute.command import evaluate as command
            from selfroute.command.evaluate_options import Options
        options = Options(
            data=data,
            model=model,
            reader=reader,
            long_context_model=long_context_model,
            base_url=base_url,
            priced_as=priced_as,
            long_context_priced_as=long_context_priced_as,
            temperature=temperature,
            strategies=strategies,
            k=k,
            sweep=sweep,
            retriever=retriever,
            embeddings=embeddings,
            order=order,
            window=window,
            limit=limit,
            data_folder=data_folder,
            out=out,
            concurrency=concurrency,
            max_cost=max_cost,
            dry_run=dry_run,
            drop_closed_book=drop_closed_book,
            explain_declines=explain_declines,
            compare_based_only_on=compare_based_only_on,
            judge=judge,
            judge_base_url=judge_base_url,
            judge_priced_as=judge_priced_as,
            grades=grades,
            as_json=as_json,
        )
        if not command.evaluate(options):
            raise typer.Exit(1)


@app.command()
def questions(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help=f"{FILES}; with --review alone, files of questions"),
    ],
    model: Model = None,
    base_url: BaseUrl = None,
    priced_as: PricedAs = None,
    number: Annotated[int, typer.Option("--n", min=1, help="How many questions to write")] = 40,
    unanswerable: Annotated[
        float, typer.Option(min=0, max=1, metavar="SHARE", help="The share of questions that have no answer")
    ] = 0.2,
    out: Annotated[Path, typer.Option(metavar="JSONL", help="The file for the questions")] = Path("questions.jsonl"),
    window: Annotated[
        int | None,
        typer.Option(min=1, help="The model's window in tokens; longer documents are read in parts [default: its own]"),
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="How many calls are made at a time")] = 4,
    max_cost: Annotated[
        float | None, typer.Option(min=0, metavar="USD", help="Stop before the cost could exceed this")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only estimate the tokens and the cost")] = False,
    review: Annotated[
        bool, typer.Option("--review", help="Make a page to look through the questions and strike some out")
    ] = False,
) -> None:
    """Have a model write questions about your own documents, for `selfroute evaluate`.

    Their quotes are looked up in the documents, and what the model knows without them is dropped. Every reply is kept:
    after an interruption, run the same command again to go on.
    """
    with _errors_on_one_line(_EVALUATE):
        with _starting():
            from selfroute.command import questions as command
            from selfroute.command.reading import Sources
        options = command.Options(
            sources=Sources(files=files, everything=True),
            model=model,
            base_url=base_url,
            priced_as=priced_as,
            number=number,
            unanswerable=unanswerable,
            out=out,
            window=window,
            concurrency=concurrency,
            max_cost=max_cost,
            dry_run=dry_run,
            review=review,
        )
        if not command.questions(options):
            raise typer.Exit(1)


@app.command()
def calibrate(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder that `selfroute evaluate --out` wrote")],
    token_share: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Look for the highest quality within this share of the long context's tokens, such as 0.3 "
            "[default: no more tokens than Self-Route takes]",
        ),
    ] = None,
    price_of_wrong: Annotated[
        float, typer.Option(metavar="PRICE", help="The cost of a wrong answer; a decline costs 1 at most")
    ] = 1.0,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file for the policy")] = Path("policy.json"),
    as_json: Json = False,
) -> None:
    """Choose when to escalate by an evaluation: both bounds, sections, and whether to escalate at all.

    No model is asked. The file is for `Calibrated.load`, which gives a chain or a query engine all of it.
    """
    with _errors_on_one_line(_EVALUATE):
        with _starting():
            from selfroute.command import calibrate as command
        command.calibrate(folder, token_share=token_share, price_of_wrong=price_of_wrong, out=out, as_json=as_json)


@app.command()
def view(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="What `selfroute evaluate --out` wrote; or .jsonl files of results, or one such file"
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="HTML", help="The page [default: view.html in the folder]")
    ] = None,
    most: Annotated[int, typer.Option(min=1, help="The most questions on the page, those worth a look first")] = 1000,
    opens: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser")] = True,
) -> None:
    """Look at results in a browser, question by question: passages, draft, document, answer, tokens and dollars.

    The page is one file that needs no network.
    """
    with _errors_on_one_line(_EVALUATE):
        with _starting():
            from selfroute.command import view as command
        command.view(folder, out=out, most=most, opens=opens)


batch = typer.Typer(
    help="Ask through a provider's batch interface: half the price, answers within a day.", rich_markup_mode=None
)
app.add_typer(batch, name="batch")
_JobFolder = Annotated[Path, typer.Option(metavar="DIR", help="The folder of the job: its state, requests and answers")]


@batch.command("export")
def batch_export(
    files: Annotated[list[Path] | None, typer.Argument(metavar="FILE...", help=f"{FILES}; they begin a job")] = None,
    questions: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The questions: the lines of a text, or a JSONL with the key `question`"),
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="PROVIDER:NAME", help="The model, such as openai:gpt-4o-mini")
    ] = None,
    long_context_model: LongContextModel = None,
    k: Annotated[int | None, typer.Option("--k", min=1, help="How many passages to retrieve [default: 5]")] = None,
    store: Store = None,
    everything: Everything = False,
    embeddings: EmbeddingModel = None,
    graded: Graded = False,
    sections: SectionTokens = None,
    job: _JobFolder = Path("batch"),
    again: Annotated[
        bool, typer.Option("--again", help="Also ask what was asked before and has no result yet, which is paid again")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write the requests that are to be asked next: of a new job the drafts, later the whole documents.

    FILE..., --questions and --model begin a job. Without them, the job goes on.
    """
    with _errors_on_one_line():
        with _starting():
            from selfroute.command import batch as command
            from selfroute.command.batch_job import Job
            from selfroute.command.reading import Sources
        more = {"model": model, "long_context_model": long_context_model, "k": k}
        more |= {"embeddings": embeddings, "graded": graded or None, "sections": sections}
        if files and questions and model:
            sources = Sources(files=files, store=store, everything=everything)
            begun = command.begin(job, sources=sources, questions=questions, **more)
        elif files or questions or store or any(value is not None for value in more.values()):
            msg = "a job begins with FILE..., --questions and --model; it continues with --job alone"
            raise ConfigurationError(msg)
        else:
            begun = Job.open(job)
        command.export(begun, again=again, as_json=as_json)


@batch.command("import")
def batch_import(
    results: Annotated[
        list[Path], typer.Argument(metavar="RESULTS...", help="The files that the provider made of a batch")
    ],
    job: _JobFolder = Path("batch"),
    as_json: Json = False,
) -> None:
    """Judge the replies, and write the answers to answers.jsonl in the job's folder.

    Exits with 1 if a file was cut off or has lines that cannot be read; the other lines are taken.
    """
    with _errors_on_one_line():
        with _starting():
            from selfroute.command import batch as command
            from selfroute.command.batch_job import Job
        if not command.import_(Job.open(job), files=results, as_json=as_json):
            raise typer.Exit(1)


def main(args: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Args:
        args: What was typed after `selfroute`; `sys.argv` if None.
    """
    try:
        return app(args, standalone_mode=False) or 0
    except KeyboardInterrupt:
        return _say("interrupted", 130)
    except Exception as error:
        if not hasattr(error, "format_message"):  # typer's error for a wrong option depends on its version
            raise
        return _say(f"{error.format_message()} (selfroute --help explains)", 2)


@contextmanager
def _starting() -> Iterator[None]:
    """Show in a terminal that something happens: the imports take a few seconds."""
    from rich.console import Console

    with Console(stderr=True).status("Starting"):
        yield


@contextmanager
def _errors_on_one_line(install: str = _INSTALL) -> Iterator[None]:
    try:
        yield
    except typer.Exit:
        raise
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    except (ConfigurationError, InputError) as error:
        _fail(str(error), 2)
    except SelfRouteError as error:
        _fail(str(error), 1)
    except ModuleNotFoundError as error:
        _fail(f"the command needs the package {error.name}: {install}", 1)
    except Exception as error:  # noqa: BLE001 - the providers' clients have no error in common
        from selfroute.error_text import one_line

        _fail(one_line(error), 1)


def _fail(message: str, code: int) -> NoReturn:
    raise typer.Exit(_say(message, code))


def _say(message: str, code: int) -> int:
    line = " ".join(message.split())
    typer.echo(f"selfroute: {''.join(filter(str.isprintable, line))}", err=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
