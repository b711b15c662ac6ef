"""The options of the commands, as typer reads them."""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from selfroute.calls.settings import DEFAULTS, checked
from selfroute.paper import PAPER
from selfroute.prompts import CHECK_QUESTION

READING = ("sections", "max_documents")
"""The options that say what is read before and after sections."""
_TAKES = {
    "sections": "auto, a number of tokens, ascending ones, such as 4000,16000, or none",
    "max_documents": "a number of documents, 0 for none, or none for no limit",
}


def numbers_of(name: str, given: str | int) -> Any:
    """Return the value of an option that is a number or several, as a chain takes it."""
    try:
        if given in ("none", "auto"):
            return checked(name, None if given == "none" else given)
        first, *more = (int(part) for part in str(given).split(","))
        return checked(name, (first, *more) if more else first)
    except ValueError as error:
        msg = f"it takes {_TAKES[name]}; not {given}"
        raise typer.BadParameter(msg) from error


def _text(metavar: str, about: str, panel: str | None = None) -> Any:
    return typer.Option(metavar=metavar, rich_help_panel=panel, help=about)


def _numbers(option: str, metavar: str, about: str) -> Any:
    name = option.removeprefix("--").replace("-", "_")
    return typer.Option(
        option, parser=partial(numbers_of, name), metavar=metavar, rich_help_panel="Reading more", help=about
    )


@dataclass(frozen=True, kw_only=True)
class Options:
    """What was typed for a command: each option once, with its help and its default; `None` is no value."""

    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="PDF, docx, HTML, Markdown and text files; folders; wildcards in quotes, such as 'reports/**/*.pdf'; "
            "- for stdin",
        ),
    ] = field(default_factory=list)
    asked: Annotated[
        list[Path],
        typer.Argument(
            metavar="[FILE...] QUESTIONS...",
            help="Files and folders of documents, which are one store; JSONL files of questions with answers, or demo",
        ),
    ] = field(default_factory=list)
    question: Annotated[
        list[str] | None,
        typer.Option("--question", "-q", help="A question, where it is not the last argument; repeat it for more"),
    ] = None
    tried: Annotated[str, typer.Option("--question", "-q", help="A question to retrieve for")] = CHECK_QUESTION
    model: Annotated[str | None, _text("PROVIDER:NAME", "The model, such as openai:gpt-5-mini", "Model")] = None
    long_context_model: Annotated[
        str | None, _text("PROVIDER:NAME", "Another model for the whole documents", "Model")
    ] = None
    base_url: Annotated[str | None, _text("URL", "The model's server, such as http://localhost:8000/v1", "Model")] = (
        None
    )
    priced_as: Annotated[
        str | None,
        _text("PROVIDER:NAME", "The model whose price counts, if its own name is in no price list", "Model"),
    ] = None
    k: Annotated[
        int, typer.Option(min=1, metavar="N", rich_help_panel="Passages", help="How many passages the draft reads")
    ] = 5
    embeddings: Annotated[
        str | None,
        _text(
            "NAME_OR_PATH",
            "Search by vectors of a sentence-transformers model, such as all-MiniLM-L6-v2 [default: by words]",
            "Passages",
        ),
    ] = None
    store: Annotated[
        Path | None, _text("DIR", "With --embeddings: the index's folder [default: in the cache folder]", "Passages")
    ] = None
    paper: Annotated[
        bool,
        typer.Option(
            "--paper", rich_help_panel="Reading more", help="The paper's rule: passages, then all documents behind them"
        ),
    ] = False
    sections: Annotated[
        Any,  # typer takes no type with several numbers
        _numbers(
            "--sections",
            "TOKENS[,TOKENS]",
            "Read the sections that matter before whole documents: at most so many tokens; then more, such as "
            "4000,16000. `auto` follows the passages, `none` reads none",
        ),
    ] = DEFAULTS.sections
    max_documents: Annotated[
        Any,
        _numbers(
            "--max-documents", "N", "Read at most N whole documents, the best ones; 0 for none, `none` for no limit"
        ),
    ] = DEFAULTS.max_documents
    limit: Annotated[int | None, typer.Option(min=1, help="Ask at most N questions of each file, spread evenly")] = None
    judge: Annotated[
        str | None,
        _text(
            "[PROVIDER:NAME]",
            "Ask a model whether the answers say what the references say; without a name, the one for documents",
        ),
    ] = None
    number: Annotated[int, typer.Option("--n", min=1, help="How many questions to write")] = 40
    unanswerable: Annotated[
        float, typer.Option(min=0, max=1, metavar="SHARE", help="The share of questions that have no answer")
    ] = 0.2
    window: Annotated[
        int | None,
        typer.Option(min=1, help="The model's window in tokens; longer documents are read in parts [default: its own]"),
    ] = None
    max_cost: Annotated[
        float | None, typer.Option(min=0, metavar="USD", help="Stop before the cost could exceed this")
    ] = None
    reader: Annotated[
        bool,
        typer.Option(
            "--reader",
            help="Answer with the sentence that shares most words with the question, without a language model",
        ),
    ] = False
    out: Annotated[Path, _text("DIR", "The folder for replies and results")] = Path("evaluation")
    out_file: Annotated[Path, typer.Option("--out", metavar="JSONL", help="The file for the questions")] = Path(
        "questions.jsonl"
    )
    name: Annotated[
        str | None, _text("NAME", "The server's name [default: that of the first file or folder]", "Server")
    ] = None
    about: Annotated[
        str | None,
        _text("TEXT", "What the documents are, in a sentence, by which a model chooses among servers", "Server"),
    ] = None
    http: Annotated[bool, typer.Option("--http", rich_help_panel="Server", help="Serve over streamable HTTP")] = False
    host: Annotated[str, _text("HOST", "With --http: the address", "Server")] = "127.0.0.1"
    port: Annotated[
        int, typer.Option(min=1, max=65_535, metavar="PORT", rich_help_panel="Server", help="With --http: the port")
    ] = 8321
    as_json: Annotated[bool, typer.Option("--json", help="Print nothing but JSON on stdout")] = False

    def __post_init__(self) -> None:
        """Check what goes together."""
        if self.paper and self._reading:
            msg = "--paper is a setting of its own: leave out --sections and --max-documents"
            raise typer.BadParameter(msg)

    @property
    def chain(self) -> dict[str, Any]:
        """The options of the chain, where they are not the defaults."""
        return {**PAPER} if self.paper else self._reading

    @property
    def _reading(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in READING if getattr(self, name) != getattr(DEFAULTS, name)}
