"""The options of the commands, as typer reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from selfroute.calls.options import MAX_DOCUMENTS, checked

_TAKES = {
    "sections": "a number of tokens, or ascending ones, such as 4000,16000",
    "max_documents": "a number of documents, 0 for none, or none for no limit",
}


def numbers_of(name: str, given: str | int) -> Any:
    """Return the value of an option that is a number or several, as a chain takes it."""
    try:
        if given == "none" and name == "max_documents":
            return None
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


_FILES = (
    "PDF, docx, HTML, Markdown and text files; folders; wildcards in quotes, such as 'reports/**/*.pdf'; - for stdin"
)
Files = Annotated[list[Path], typer.Argument(metavar="FILE...", help=_FILES, show_default=False)]
Questions = Annotated[
    list[Path],
    typer.Argument(metavar="QUESTIONS...", help="JSONL files of questions with answers and documents, or demo"),
]
Question = Annotated[
    list[str] | None,
    typer.Option("--question", "-q", help="A question, where it is not the last argument; repeat it for more"),
]
CheckQuestion = Annotated[str | None, typer.Option("--question", "-q", help="A question to retrieve for")]
Model = Annotated[str | None, _text("PROVIDER:NAME", "The model, such as openai:gpt-4o-mini", "Model")]
LongContextModel = Annotated[str | None, _text("PROVIDER:NAME", "Another model for the whole documents", "Model")]
BaseUrl = Annotated[str | None, _text("URL", "The model's server, such as http://localhost:8000/v1", "Model")]
PricedAs = Annotated[
    str | None, _text("PROVIDER:NAME", "The model whose price counts, if its own name is in no price list", "Model")
]
Reader = Annotated[
    bool,
    typer.Option(
        "--reader", help="Answer with the sentence that shares most words with the question, without a language model"
    ),
]
K = Annotated[
    int, typer.Option("--k", min=1, metavar="N", rich_help_panel="Passages", help="How many passages the draft reads")
]
EmbeddingModel = Annotated[
    str | None,
    _text(
        "NAME_OR_PATH",
        "Search by vectors of a sentence-transformers model, such as all-MiniLM-L6-v2 [default: by words]",
        "Passages",
    ),
]
Store = Annotated[
    Path | None, _text("DIR", "With --embeddings: the index's folder [default: in the cache folder]", "Passages")
]
Graded = Annotated[
    bool,
    typer.Option(
        "--graded",
        rich_help_panel="Reading more",
        help="Ask the model how sure it is: an answer in doubt reads more, a hopeless question stops",
    ),
]
SectionTokens = Annotated[
    Any,  # typer takes no type with several numbers
    _numbers(
        "--sections",
        "TOKENS[,TOKENS]",
        "Read the sections that matter before whole documents: at most N tokens; then more, such as 4000,16000",
    ),
]
MaxDocuments = Annotated[
    Any,
    _numbers("--max-documents", "N", "Read at most N whole documents, the best ones; 0 for none, `none` for no limit"),
]
Strategies = Annotated[
    str | None,
    _text(
        "NAMES",
        "The strategies to compare, separated by commas; also graded, graded_sections, or all of them "
        "[default: rag,self_route,sections,long_context]",
    ),
]
Limit = Annotated[int | None, typer.Option(min=1, help="Ask at most N questions of each file, spread evenly")]
OutFolder = Annotated[Path, _text("DIR", "The folder for replies and results")]
OutFile = Annotated[Path, _text("JSONL", "The file for the questions")]
MaxCost = Annotated[float | None, typer.Option(min=0, metavar="USD", help="Stop before the cost could exceed this")]
Judge = Annotated[
    str | None,
    _text(
        "[PROVIDER:NAME]",
        "Ask a model whether the answers say what the references say; without a name, the one for documents",
    ),
]
Number = Annotated[int, typer.Option("--n", min=1, help="How many questions to write")]
Unanswerable = Annotated[
    float, typer.Option(min=0, max=1, metavar="SHARE", help="The share of questions that have no answer")
]
Window = Annotated[
    int | None,
    typer.Option(min=1, help="The model's window in tokens; longer documents are read in parts [default: its own]"),
]
Json = Annotated[bool, typer.Option("--json", help="Print nothing but JSON on stdout")]
Http = Annotated[bool, typer.Option("--http", rich_help_panel="Server", help="Serve over streamable HTTP")]
HostName = Annotated[str, _text("HOST", "With --http: the address", "Server")]
Port = Annotated[
    int, typer.Option(min=1, max=65_535, metavar="PORT", rich_help_panel="Server", help="With --http: the port")
]


@dataclass(frozen=True, kw_only=True)
class Options:
    """What was typed for a command."""

    files: Sequence[Path] = ()
    question: Any = None
    limit: int | None = None
    reader: bool = False
    model: str | None = None
    long_context_model: str | None = None
    base_url: str | None = None
    priced_as: str | None = None
    k: int = 5
    embeddings: str | None = None
    store: Path | None = None
    graded: bool = False
    sections: Any = None
    max_documents: int | None = MAX_DOCUMENTS
    strategies: str | None = None
    judge: str | None = None
    max_cost: float | None = None
    out: Path = Path("evaluation")
    number: int = 40
    unanswerable: float = 0.2
    window: int | None = None
    as_json: bool = False

    @property
    def chain(self) -> dict[str, Any]:
        """The options of the chain."""
        how = "graded" if self.graded else "text"
        return {"answerability": how, "sections": self.sections, "max_documents": self.max_documents}
