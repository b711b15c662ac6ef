"""The options that several commands have."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from selfroute.calls.settings import MAX_DOCUMENTS, checked
from selfroute.effects import Start as FirstStep

if TYPE_CHECKING:
    from selfroute.command.asking import Options
    from selfroute.command.reading import Sources

_TAKES = {
    "sections": "a number of tokens, or ascending ones, such as 4000,16000",
    "doubt_below": "a number from 0 to 100, or one for the passages and one for the sections, such as 70,60",
    "max_documents": "a number of documents, 0 for none, or none for no limit",
}


def numbers_of(name: str, given: str | int) -> Any:
    """Return the value of an option that is a number or several, as a chain takes it.

    Args:
        name: The name of the chain's option.
        given: What was typed, or the default.
    """
    try:
        if given == "none" and name == "max_documents":
            return None
        first, *more = (int(part) for part in str(given).split(","))
        return checked(name, (first, *more) if more else first)
    except ValueError as error:
        msg = f"it takes {_TAKES[name]}; not {given}"
        raise typer.BadParameter(msg) from error


FILES = "PDF, docx, HTML, Markdown and text files; folders; wildcards in quotes, such as 'reports/**/*.pdf'"
Files = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help=f"{FILES}; - for the standard input", show_default=False)
]
Everything = Annotated[
    bool, typer.Option("--all", help="Read and index however many files there are, without a question")
]
Store = Annotated[
    Path | None, typer.Option(metavar="DIR", help="The folder for the index [default: in your cache folder]")
]
Framework = Annotated[Literal["langchain", "llamaindex"], typer.Option(help="The framework that routes the questions")]
Model = Annotated[
    str | None,
    typer.Option(
        metavar="PROVIDER:NAME",
        help="The model, such as openai:gpt-4o-mini",
    ),
]
LongContextModel = Annotated[
    str | None, typer.Option(metavar="PROVIDER:NAME", help="Another model for the whole documents")
]
BaseUrl = Annotated[
    str | None, typer.Option(metavar="URL", help="The model's server, such as http://localhost:8000/v1")
]
PricedAs = Annotated[
    str | None,
    typer.Option(
        metavar="PROVIDER:NAME", help="The model whose price counts, if its own name or address is in no price list"
    ),
]
K = Annotated[int, typer.Option("--k", min=1, help="How many passages the draft reads")]
EmbeddingModel = Annotated[
    str | None,
    typer.Option(metavar="NAME_OR_PATH", help="A sentence-transformers model [default: all-MiniLM-L6-v2]"),
]
Graded = Annotated[
    bool,
    typer.Option("--graded", help="Ask the model how sure it is: doubted answers read more, hopeless questions stop"),
]
SectionTokens = Annotated[
    Any,  # typer takes no type with several numbers
    typer.Option(
        "--sections",
        parser=partial(numbers_of, "sections"),
        metavar="TOKENS[,TOKENS]",
        help="Read the sections that matter before whole documents: at most so many tokens, such as 4000; then more, "
        "such as 4000,16000",
    ),
]
MaxDocuments = Annotated[
    Any,
    typer.Option(
        "--max-documents",
        parser=partial(numbers_of, "max_documents"),
        metavar="N",
        help="Read at most so many whole documents for a question, the best ones; 0 for none, `none` for no limit",
    ),
]
Start = Annotated[
    FirstStep,
    typer.Option(help="The first step; auto reads the documents at once where the passages are most of them"),
]
Reader = Annotated[
    bool,
    typer.Option("--reader", help="Answer with the sentence nearest to the question, without a language model"),
]
Json = Annotated[bool, typer.Option("--json", help="Print nothing but JSON on stdout")]
DoubtBelow = Annotated[
    Any,
    typer.Option(
        "--doubt-below",
        parser=partial(numbers_of, "doubt_below"),
        metavar="N[,N]",
        help="With --graded: an answer with less confidence reads more; two numbers are for the passages and for the "
        "sections [default: 50]",
    ),
]
StopBelow = Annotated[
    int | None,
    typer.Option(min=0, max=100, help="With --graded: a decline with less prospect ends there [default: 20]"),
]
BudgetTokens = Annotated[
    int | None, typer.Option(min=0, help="The most tokens that a question may take; the draft is always paid")
]
BudgetUsd = Annotated[
    float | None, typer.Option(min=0, metavar="USD", help="The most that a question may cost, likewise")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """The options of every command that asks about the user's own files; see `selfroute ask --help`."""

    files: Files
    framework: Framework = "langchain"
    model: Model = None
    long_context_model: LongContextModel = None
    base_url: BaseUrl = None
    k: K = 5
    store: Store = None
    everything: Everything = False
    embeddings: EmbeddingModel = None
    as_json: Json = False
    priced_as: PricedAs = None
    graded: Graded = False
    doubt_below: DoubtBelow = None
    stop_below: StopBelow = None
    sections: SectionTokens = None
    max_documents: MaxDocuments = MAX_DOCUMENTS
    start: Start = "rag"
    budget_tokens: BudgetTokens = None
    budget_usd: BudgetUsd = None

    def load(self) -> tuple[Options, Sources]:
        """Import what they need, which is heavy, and return the options of the command's body and the files."""
        from selfroute.command.asking import Options  # noqa: PLC0415
        from selfroute.command.loading import load  # noqa: PLC0415
        from selfroute.command.reading import Sources  # noqa: PLC0415
        from selfroute.command.steering import Steering  # noqa: PLC0415

        steering = Steering(
            graded=self.graded,
            doubt_below=self.doubt_below,
            stop_below=self.stop_below,
            sections=self.sections,
            max_documents=self.max_documents,
            start=self.start,
            budget_tokens=self.budget_tokens,
            budget_usd=self.budget_usd,
        )
        options = Options(
            framework=load(self.framework),
            model=self.model,
            long_context_model=self.long_context_model,
            base_url=self.base_url,
            k=self.k,
            embeddings=self.embeddings,
            as_json=self.as_json,
            priced_as=self.priced_as,
            steering=steering,
        )
        return options, Sources(files=self.files, store=self.store, everything=self.everything)


def asking(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `Asking` in place of its first parameter, for typer to read."""
    shared = inspect.signature(Asking, eval_str=True).parameters
    first, *own = inspect.signature(command, eval_str=True).parameters.values()

    def run(**given: Any) -> None:
        command(Asking(**{name: given.pop(name) for name in shared}), **given)

    parameters = [shared["files"], *own, *(each for name, each in shared.items() if name != "files")]
    parameters = [each.replace(kind=first.KEYWORD_ONLY) for each in parameters]
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run
