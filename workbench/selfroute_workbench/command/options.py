"""The commands that answer: a class for each, whose fields are its options, as typer reads them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from selfroute.calls.settings import MAX_DOCUMENTS, checked
from selfroute.effects import Start as FirstStep
from selfroute.errors import ConfigurationError
from selfroute.policies import Budget

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
    bool,
    typer.Option(
        "--all", rich_help_panel="Passages", help="Read and index however many files there are, without a question"
    ),
]
Store = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        rich_help_panel="Passages",
        help="With --embeddings: the index's folder [default: in the cache folder]",
    ),
]
Model = Annotated[
    str | None,
    typer.Option(metavar="PROVIDER:NAME", rich_help_panel="Model", help="The model, such as openai:gpt-4o-mini"),
]
LongContextModel = Annotated[
    str | None,
    typer.Option(metavar="PROVIDER:NAME", rich_help_panel="Model", help="Another model for the whole documents"),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(metavar="URL", rich_help_panel="Model", help="The model's server, such as http://localhost:8000/v1"),
]
PricedAs = Annotated[
    str | None,
    typer.Option(
        metavar="PROVIDER:NAME",
        rich_help_panel="Model",
        help="The model whose price counts, if its own name or address is in no price list",
    ),
]
K = Annotated[
    int, typer.Option("--k", min=1, metavar="N", rich_help_panel="Passages", help="How many passages the draft reads")
]
EmbeddingModel = Annotated[
    str | None,
    typer.Option(
        metavar="NAME_OR_PATH",
        rich_help_panel="Passages",
        help="Search by vectors of a sentence-transformers model, such as all-MiniLM-L6-v2 [default: by words]",
    ),
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
    typer.Option(
        "--sections",
        parser=partial(numbers_of, "sections"),
        metavar="TOKENS[,TOKENS]",
        rich_help_panel="Reading more",
        help="Read the sections that matter before whole documents: at most N tokens, such as 4000; then more, "
        "such as 4000,16000",
    ),
]
MaxDocuments = Annotated[
    Any,
    typer.Option(
        "--max-documents",
        parser=partial(numbers_of, "max_documents"),
        metavar="N",
        rich_help_panel="Reading more",
        help="Read at most N whole documents for a question, the best ones; 0 for none, `none` for no limit",
    ),
]
Start = Annotated[
    FirstStep,
    typer.Option(
        rich_help_panel="Reading more",
        help="The first step; auto reads the documents at once where the passages are most of them",
    ),
]
Reader = Annotated[
    bool,
    typer.Option(
        "--reader",
        rich_help_panel="Model",
        help="Answer with the sentence that shares most words with the question, without a language model",
    ),
]
MaxCost = Annotated[
    float | None,
    typer.Option(min=0, metavar="USD", rich_help_panel="Cost", help="Stop before the cost could exceed this"),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", rich_help_panel="Cost", help="Only estimate the tokens and the cost")
]
Json = Annotated[bool, typer.Option("--json", rich_help_panel="Output", help="Print nothing but JSON on stdout")]
DoubtBelow = Annotated[
    Any,
    typer.Option(
        "--doubt-below",
        parser=partial(numbers_of, "doubt_below"),
        metavar="N[,N]",
        rich_help_panel="Reading more",
        help="With --graded: an answer with less confidence reads more; two numbers are for the passages and for the "
        "sections [default: 50]",
    ),
]
StopBelow = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=100,
        metavar="N",
        rich_help_panel="Reading more",
        help="With --graded: a decline with less prospect ends there [default: 20]",
    ),
]
BudgetTokens = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        rich_help_panel="Cost",
        help="The most tokens that a question may take; the draft is always paid",
    ),
]
BudgetUsd = Annotated[
    float | None,
    typer.Option(
        min=0, metavar="USD", rich_help_panel="Cost", help="The most that a question may cost; the draft is always paid"
    ),
]


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command with its options.

    Attributes:
        performed_by: The function that takes this object and returns False if it failed, as `module:name`.
        brought_by: What brings the packages that it needs.
    """

    performed_by: ClassVar[str]
    brought_by: ClassVar[str] = "selfroute-workbench"


@dataclass(frozen=True, kw_only=True)
class Answering(Command):
    """The options of every command that answers questions."""

    model: Model = None
    long_context_model: LongContextModel = None
    base_url: BaseUrl = None
    k: K = 5
    embeddings: EmbeddingModel = None
    as_json: Json = False
    priced_as: PricedAs = None
    graded: Graded = False
    sections: SectionTokens = None

    def chain_options(self) -> dict[str, Any]:
        """Return the options of the chain."""
        return {"answerability": "graded" if self.graded else "text", "sections": self.sections}


@dataclass(frozen=True, kw_only=True)
class Demo(Answering):
    """Answer the questions that come with selfroute from the documents that come with it.

    Without --model, recorded replies of a language model answer, and the strategies are compared.
    Example: selfroute demo --model openai:gpt-4o-mini
    """

    performed_by: ClassVar[str] = "selfroute_workbench.command.demo:demo"

    limit: Annotated[int | None, typer.Option(min=1, help="Ask at most N questions, spread evenly")] = None
    reader: Reader = False


@dataclass(frozen=True, kw_only=True)
class Asking(Answering):
    """The options of every command that asks about the user's own files."""

    files: Files
    store: Store = None
    everything: Everything = False
    doubt_below: DoubtBelow = None
    stop_below: StopBelow = None
    max_documents: MaxDocuments = MAX_DOCUMENTS
    start: Start = "rag"
    budget_tokens: BudgetTokens = None
    budget_usd: BudgetUsd = None

    def chain_options(self) -> dict[str, Any]:
        """Return the options of the chain.

        Raises:
            ConfigurationError: An option would have no effect.
        """
        for option, value in (("--doubt-below", self.doubt_below), ("--stop-below", self.stop_below)):
            if value is not None and not self.graded:
                msg = f"{option} needs --graded too, which asks the model for the numbers that it bounds"
                raise ConfigurationError(msg)
        if isinstance(self.doubt_below, tuple) and not self.sections:
            msg = "--doubt-below has a bound for sections: pass --sections 4000 too, or one number"
            raise ConfigurationError(msg)
        if self.start == "long_context" and self.max_documents == 0:
            msg = "--start long_context reads documents, and --max-documents 0 forbids it: leave out one of them"
            raise ConfigurationError(msg)
        if self.budget_usd is not None and self.model is None:
            msg = "--budget-usd needs --model too, since the extractive reader costs nothing; or use --budget-tokens"
            raise ConfigurationError(msg)
        bounded = self.budget_usd is not None or self.budget_tokens is not None
        return {
            **super().chain_options(),
            "doubt_below": self.doubt_below,
            "stop_below": self.stop_below,
            "max_documents": self.max_documents,
            "start": self.start,
            "escalation": Budget(usd=self.budget_usd, tokens=self.budget_tokens) if bounded else None,
        }


@dataclass(frozen=True, kw_only=True)
class Ask(Asking):
    """Answer questions from your own files.

    Without --question the last argument is the question. Example: selfroute ask report.pdf "When does it end?"
    """

    performed_by: ClassVar[str] = "selfroute_workbench.command.asking:ask"

    question: Annotated[
        list[str] | None,
        typer.Option("--question", "-q", help="A question, where it is not the last argument; repeat it for more"),
    ] = None
    show_passages: Annotated[bool, typer.Option(rich_help_panel="Output", help="Print the retrieved passages")] = True


@dataclass(frozen=True, kw_only=True)
class Chat(Asking):
    """Chat with your own files: a question may follow up on earlier ones.

    Without a terminal, each line of the standard input is a question.
    Example: selfroute chat reports --model openai:gpt-4o-mini
    """

    performed_by: ClassVar[str] = "selfroute_workbench.command.chatting:chat"


@dataclass(frozen=True, kw_only=True)
class Check(Asking):
    """Try what `ask` would use, without asking a model; exit with 1 if something has to be changed.

    Example: selfroute check reports --model openai:gpt-4o-mini
    """

    performed_by: ClassVar[str] = "selfroute_workbench.command.asking:check"

    question: Annotated[str | None, typer.Option("--question", "-q", help="A question to retrieve for")] = None


@dataclass(frozen=True, kw_only=True)
class Mcp(Asking):
    """Serve your own files to clients of the Model Context Protocol, such as Claude Code, Cursor or VS Code.

    Over the standard input and output, or with --http over the network. There clients send a token: that in
    SELFROUTE_MCP_TOKEN, or on this machine one that is made and printed.
    Example: selfroute mcp reports --model openai:gpt-4o-mini
    """

    performed_by: ClassVar[str] = "selfroute_workbench.command.mcp:serve"
    brought_by: ClassVar[str] = "selfroute-workbench[mcp]"

    http: Annotated[bool, typer.Option("--http", rich_help_panel="Server", help="Serve over streamable HTTP")] = False
    host: Annotated[str, typer.Option(metavar="HOST", rich_help_panel="Server", help="With --http: the address")] = (
        "127.0.0.1"
    )
    port: Annotated[
        int, typer.Option(min=1, max=65_535, metavar="PORT", rich_help_panel="Server", help="With --http: the port")
    ] = 8321
