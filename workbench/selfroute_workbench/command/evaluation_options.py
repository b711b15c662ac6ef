"""The commands that evaluate: a class for each, whose fields are its options, as typer reads them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from selfroute_workbench.command.options import (
    FILES,
    BaseUrl,
    Command,
    DryRun,
    EmbeddingModel,
    Json,
    K,
    LongContextModel,
    MaxCost,
    Model,
    PricedAs,
    Reader,
    SectionTokens,
)


@dataclass(frozen=True, kw_only=True)
class Evaluate(Command):
    """Compare RAG, Self-Route, sections and the long context on questions of your own with known answers.

    Each question is asked once in each step, by what `selfroute ask` would use on its document. Every reply is kept:
    after an interruption, run the same command again to go on. `demo` evaluates the recorded replies that come with
    selfroute, unless there is a --model or --reader.
    Example: selfroute evaluate questions.jsonl --model openai:gpt-4o-mini --max-cost 2
    """

    performed_by: ClassVar[str] = "selfroute_workbench.command.evaluate:evaluate"

    questions: Annotated[
        list[Path],
        typer.Argument(metavar="QUESTIONS...", help="JSONL files of questions with answers and documents, or demo"),
    ]
    model: Model = None
    reader: Reader = False
    long_context_model: LongContextModel = None
    base_url: BaseUrl = None
    priced_as: PricedAs = None
    long_context_priced_as: PricedAs = None
    temperature: Annotated[float | None, typer.Option(help="The model's temperature [default: the provider's]")] = None
    k: K = 5
    embeddings: EmbeddingModel = None
    sections: SectionTokens = None
    strategies: Annotated[
        str | None,
        typer.Option(
            help="The strategies to compare, separated by commas; also graded, graded_sections, or all of them "
            "[default: rag,self_route,sections,long_context]"
        ),
    ] = None
    limit: Annotated[int | None, typer.Option(min=1, help="Ask at most N questions of each file, spread evenly")] = None
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder for replies and results")] = Path("evaluation")
    concurrency: Annotated[int, typer.Option(min=1, help="How many questions are asked at a time")] = 4
    max_cost: MaxCost = None
    dry_run: DryRun = False
    tables: Annotated[bool, typer.Option("--tables", help="Print all tables, with their notes")] = False
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="[PROVIDER:NAME]",
            help="Ask a model whether the answers say what the references say; without a name, the one for documents",
        ),
    ] = None
    judge_base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="The judge's server [default: the model's, for its provider]")
    ] = None
    judge_priced_as: PricedAs = None
    grades: Annotated[
        Path | None,
        typer.Option(metavar="JSONL", help="Grades of your own: shows how far the judge agrees with them"),
    ] = None
    as_json: Json = False


@dataclass(frozen=True, kw_only=True)
class Questions(Command):
    """Have a model write questions about your own documents, for `selfroute evaluate`.

    Their quotes are looked up in the documents, and what the model knows without them is dropped. Every reply is kept:
    after an interruption, run the same command again to go on.
    Example: selfroute questions reports --model openai:gpt-4o-mini --max-cost 2
    """

    performed_by: ClassVar[str] = "selfroute_workbench.command.questions:questions"

    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help=f"{FILES}; with --review alone, files of questions"),
    ]
    model: Model = None
    base_url: BaseUrl = None
    priced_as: PricedAs = None
    number: Annotated[int, typer.Option("--n", min=1, help="How many questions to write")] = 40
    unanswerable: Annotated[
        float, typer.Option(min=0, max=1, metavar="SHARE", help="The share of questions that have no answer")
    ] = 0.2
    out: Annotated[Path, typer.Option(metavar="JSONL", help="The file for the questions")] = Path("questions.jsonl")
    window: Annotated[
        int | None,
        typer.Option(min=1, help="The model's window in tokens; longer documents are read in parts [default: its own]"),
    ] = None
    concurrency: Annotated[int, typer.Option(min=1, help="How many calls are made at a time")] = 4
    max_cost: MaxCost = None
    dry_run: DryRun = False
    review: Annotated[
        bool, typer.Option("--review", help="Make a page to look through the questions and strike some out")
    ] = False


@dataclass(frozen=True, kw_only=True)
class Calibrate(Command):
    """Choose options by an evaluation: both bounds, sections, and whether to escalate at all.

    No model is asked. The file is plain JSON, to be passed to a chain or a query engine as options.
    Example: selfroute calibrate evaluation
    """

    performed_by: ClassVar[str] = "selfroute_workbench.command.calibrate:calibrate"

    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder that `selfroute evaluate --out` wrote")]
    token_share: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Look for the highest quality within this share of the long context's tokens, such as 0.3 "
            "[default: no more tokens than Self-Route takes]",
        ),
    ] = None
    price_of_wrong: Annotated[
        float, typer.Option(metavar="PRICE", help="The cost of a wrong answer; a decline costs 1 at most")
    ] = 1.0
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file for the options")] = Path("options.json")
    as_json: Json = False


@dataclass(frozen=True, kw_only=True)
class View(Command):
    """Look at results in a browser, question by question: passages, draft, document, answer, tokens and dollars.

    The page is one file that needs no network. Example: selfroute view evaluation
    """

    performed_by: ClassVar[str] = "selfroute_workbench.command.view:view"

    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="What `selfroute evaluate --out` wrote; or .jsonl files of results, or one such file"
        ),
    ]
    out: Annotated[Path | None, typer.Option(metavar="HTML", help="The page [default: view.html in the folder]")] = None
    most: Annotated[int, typer.Option(min=1, help="The most questions on the page, those worth a look first")] = 1000
    opens: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser")] = True
