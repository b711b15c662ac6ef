"""The commands that evaluate: a class for each, whose fields are its options, as typer reads them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import typer

from selfroute.command.options import (
    FILES,
    BaseUrl,
    Command,
    DryRun,
    Json,
    LongContextModel,
    MaxCost,
    Model,
    PricedAs,
    Reader,
)


@dataclass(frozen=True, kw_only=True)
class Evaluate(Command):
    """Compare RAG, long context and Self-Route on questions with known answers.

    The set-up is the paper's: its prompts, chunks of 300 words, 5 passages. Every reply is kept: after an interruption,
    run the same command again to go on. For the data set demo, recorded replies to the default prompts are evaluated,
    unless there is a --model or --reader.
    """

    performed_by: ClassVar[str] = "selfroute.command.evaluate:evaluate"
    extra: ClassVar[str] = "evaluate"

    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA...",
            help="Data sets by name (narrativeqa, en.qa, passkey, ..., demo), or JSONL files of your own",
        ),
    ]
    model: Model = None
    reader: Reader = False
    long_context_model: LongContextModel = None
    base_url: BaseUrl = None
    priced_as: PricedAs = None
    long_context_priced_as: PricedAs = None
    temperature: Annotated[float | None, typer.Option(help="The model's temperature [default: the provider's]")] = None
    strategies: Annotated[
        str | None,
        typer.Option(
            help="The strategies to compare, separated by commas; also sections, graded, graded_sections, or all of "
            "them [default: rag,long_context,self_route]"
        ),
    ] = None
    k: Annotated[
        str, typer.Option("--k", help="How many passages to retrieve; several numbers, such as 1,5,10, give a curve")
    ] = "5"
    sweep: Annotated[
        str | None, typer.Option(metavar="k=1,3,5,10", help="The numbers of passages to try, in place of --k")
    ] = None
    retriever: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="contriever, dragon, bm25, window, tree, raptor, provider:name, or a sentence-transformers model",
        ),
    ] = "contriever"
    embeddings: Annotated[
        str, typer.Option(metavar="NAME", help="What the retrievers window, tree and raptor compare by")
    ] = "all-MiniLM-L6-v2"
    order: Annotated[
        Literal["score", "document"], typer.Option(help="Passages nearest first, or in the document's order")
    ] = "score"
    window: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="The model's window in tokens; longer documents are cut in the middle [default: what the model says]",
        ),
    ] = None
    limit: Annotated[
        int | None, typer.Option(min=1, help="Ask only so many questions of each data set, spread evenly")
    ] = None
    data_folder: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder with LongBench and InfiniteBench [default: download them]"),
    ] = None
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder for replies and results")] = Path("evaluation")
    concurrency: Annotated[int, typer.Option(min=1, help="How many questions are asked at a time")] = 4
    max_cost: MaxCost = None
    dry_run: DryRun = False
    drop_closed_book: Annotated[
        bool,
        typer.Option(
            "--drop-closed-book",
            help="Show the scores also without the questions that the model answers from memory (Table 5)",
        ),
    ] = False
    explain_declines: Annotated[
        bool, typer.Option("--explain-declines", help="Ask the model why it declined (Figure 4)")
    ] = False
    compare_based_only_on: Annotated[
        bool, typer.Option("--compare-based-only-on", help='Also read with "based only on the passage" (Table 4)')
    ] = False
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
    """

    performed_by: ClassVar[str] = "selfroute.command.questions:questions"
    extra: ClassVar[str] = "evaluate"

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
    """Choose when to escalate by an evaluation: both bounds, sections, and whether to escalate at all.

    No model is asked. The file is for `Calibrated.load`, which gives a chain or a query engine all of it.
    """

    performed_by: ClassVar[str] = "selfroute.command.calibrate:calibrate"
    extra: ClassVar[str] = "evaluate"

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
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file for the policy")] = Path("policy.json")
    as_json: Json = False


@dataclass(frozen=True, kw_only=True)
class View(Command):
    """Look at results in a browser, question by question: passages, draft, document, answer, tokens and dollars.

    The page is one file that needs no network.
    """

    performed_by: ClassVar[str] = "selfroute.command.view:view"
    extra: ClassVar[str] = "evaluate"

    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="What `selfroute evaluate --out` wrote; or .jsonl files of results, or one such file"
        ),
    ]
    out: Annotated[Path | None, typer.Option(metavar="HTML", help="The page [default: view.html in the folder]")] = None
    most: Annotated[int, typer.Option(min=1, help="The most questions on the page, those worth a look first")] = 1000
    opens: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser")] = True
