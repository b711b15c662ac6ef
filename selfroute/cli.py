"""The `selfroute` command: a demo that needs no key, questions to your own text files, and evaluations.

Exit codes: 0 done; 1 it failed on the way (the provider, a missing package); 2 the call can not work as
it is (a file, an option, a model's name or key); 130 interrupted. Errors are one line on stderr.
"""
# ruff: noqa: FBT001, FBT002, PLR0913, PLR0917, PLC0415
# typer reads the options off the signatures; what is heavy is imported when a command runs

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal, NoReturn

from selfroute import __version__
from selfroute.errors import ConfigurationError, InputError, SelfRouteError

_INSTALL = 'pip install "selfroute[cli]"'
_EVALUATE = 'pip install "selfroute[evaluate]"'

try:
    import typer
except ModuleNotFoundError:
    # The console script imports this module first: anything else would show its user a traceback.
    sys.exit(f"selfroute: the command needs the package typer: {_INSTALL}")

app = typer.Typer(name="selfroute", add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

Framework = Annotated[Literal["langchain", "llamaindex"], typer.Option(help="What routes the questions")]
Model = Annotated[
    str | None,
    typer.Option(metavar="PROVIDER:NAME", help="The model, such as openai:gpt-4o-mini [default: no language model]"),
]
LongContextModel = Annotated[
    str | None, typer.Option(metavar="PROVIDER:NAME", help="Another model for the whole documents")
]
BaseUrl = Annotated[
    str | None, typer.Option(metavar="URL", help="The model's server, such as http://localhost:8000/v1")
]
PricedAs = Annotated[
    str | None,
    typer.Option(metavar="PROVIDER:NAME", help="What the model is priced as, where its own name is in no price list"),
]
K = Annotated[int, typer.Option("--k", min=1, help="How many passages are retrieved")]
EmbeddingModel = Annotated[
    str | None,
    typer.Option(metavar="NAME_OR_PATH", help="A sentence-transformers model [default: all-MiniLM-L6-v2]"),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout")]


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
) -> None:
    """Route the questions that come with selfroute over the documents that come with it."""
    with _errors_on_one_line():
        with _starting():
            from selfroute.command import demo_and_ask as commands
            from selfroute.command import framework as frameworks

            host = frameworks.load(framework)
        options = commands.Options(host, model, long_context_model, base_url, k, embeddings, as_json)
        commands.demo(options, limit=limit)


@app.command()
def ask(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="UTF-8 text files")],
    question: Annotated[list[str], typer.Option("--question", "-q", help="A question; give it again for more")],
    framework: Framework = "langchain",
    model: Model = None,
    long_context_model: LongContextModel = None,
    base_url: BaseUrl = None,
    k: K = 5,
    store: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the index is kept [default: your cache folder]")
    ] = None,
    show_passages: Annotated[bool, typer.Option(help="Print what was retrieved")] = True,
    embeddings: EmbeddingModel = None,
    as_json: Json = False,
) -> None:
    """Route questions over your own text files."""
    with _errors_on_one_line():
        with _starting():
            from selfroute.command import demo_and_ask as commands
            from selfroute.command import framework as frameworks

            host = frameworks.load(framework)
        options = commands.Options(host, model, long_context_model, base_url, k, embeddings, as_json)
        commands.ask(options, files=files, questions=question, store=store, passages=show_passages)


@app.command()
def evaluate(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA...",
            help="Data sets by name (narrativeqa, en.qa, passkey, ..., demo), or JSONL files of your own",
        ),
    ],
    model: Model = None,
    long_context_model: LongContextModel = None,
    base_url: BaseUrl = None,
    priced_as: PricedAs = None,
    long_context_priced_as: PricedAs = None,
    temperature: Annotated[float | None, typer.Option(help="Of the model [default: the provider's]")] = None,
    strategies: Annotated[
        str, typer.Option(help="What is compared, with commas between")
    ] = "rag,long_context,self_route",
    k: Annotated[str, typer.Option("--k", help="How many passages; several, such as 1,5,10, for a curve")] = "5",
    retriever: Annotated[
        str, typer.Option(metavar="NAME_OR_PATH", help="contriever, dragon, bm25 or a sentence-transformers model")
    ] = "contriever",
    order: Annotated[
        Literal["score", "document"], typer.Option(help="Passages nearest first, or as they stand in the document")
    ] = "score",
    window: Annotated[
        int | None,
        typer.Option(
            min=1, help="Tokens that the model takes; longer documents are cut in the middle [default: what it says]"
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Ask only so many questions of each, spread evenly")] = None,
    data_folder: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where LongBench and InfiniteBench are [default: the hub]")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where replies and results are kept")] = Path("evaluation"),
    concurrency: Annotated[int, typer.Option(min=1, help="How many questions are asked at a time")] = 4,
    max_cost: Annotated[
        float | None, typer.Option(min=0, metavar="USD", help="Ask nothing more when this could be passed")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only estimate tokens and money")] = False,
    drop_closed_book: Annotated[
        bool, typer.Option("--drop-closed-book", help="Also leave out what the model answers from memory (Table 5)")
    ] = False,
    explain_declines: Annotated[
        bool, typer.Option("--explain-declines", help="Ask the model why it declined (Figure 4)")
    ] = False,
    compare_based_only_on: Annotated[
        bool, typer.Option("--compare-based-only-on", help='Also read with "based only on the passage" (Table 4)')
    ] = False,
    as_json: Json = False,
) -> None:
    """Compare RAG, long context and Self-Route on questions with known answers.

    The set-up is the paper's: its prompts, chunks of 300 words, 5 passages. Every reply is kept: run the same command
    again after an interruption, and it goes on where it was.
    """
    with _errors_on_one_line(_EVALUATE):
        with _starting():
            from selfroute.command import evaluate as command
        given = {name: value for name, value in locals().items() if name in command.Options.__slots__}
        if not command.evaluate(command.Options(**given)):
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
        if not hasattr(error, "format_message"):  # what typer raises for a wrong option differs by version
            raise
        return _say(f"{error.format_message()} (selfroute --help explains)", 2)


@contextmanager
def _starting() -> Iterator[None]:
    """Show, in a terminal, that the imports take a few seconds."""
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
    typer.echo(f"selfroute: {' '.join(message.split())}", err=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
