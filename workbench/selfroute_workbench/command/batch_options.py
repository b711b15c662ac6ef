"""The commands of `selfroute batch`: a class for each, whose fields are its options, as typer reads them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from selfroute_workbench.command.options import (
    FILES,
    Command,
    EmbeddingModel,
    Everything,
    Graded,
    Json,
    LongContextModel,
    Model,
    SectionTokens,
    Store,
)

JobFolder = Annotated[Path, typer.Option(metavar="DIR", help="The folder of the job: its state, requests and answers")]


@dataclass(frozen=True, kw_only=True)
class Export(Command):
    """Write the requests that are to be asked next: of a new job the drafts, later the whole documents.

    FILE..., --questions and --model begin a job. Without them, the job goes on.
    Example: selfroute batch export reports --questions questions.txt --model openai:gpt-4o-mini
    """

    performed_by: ClassVar[str] = "selfroute_workbench.command.batch:export"

    files: Annotated[list[Path] | None, typer.Argument(metavar="FILE...", help=f"{FILES}; they begin a job")] = None
    questions: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The questions: the lines of a text, or a JSONL with the key `question`"),
    ] = None
    model: Model = None
    long_context_model: LongContextModel = None
    k: Annotated[int | None, typer.Option("--k", min=1, help="How many passages to retrieve [default: 5]")] = None
    store: Store = None
    everything: Everything = False
    embeddings: EmbeddingModel = None
    graded: Graded = False
    sections: SectionTokens = None
    job: JobFolder = Path("batch")
    again: Annotated[
        bool, typer.Option("--again", help="Also ask what was asked before and has no result yet, which is paid again")
    ] = False
    as_json: Json = False


@dataclass(frozen=True, kw_only=True)
class Import(Command):
    """Judge the replies, and write the answers to answers.jsonl in the job's folder.

    Exits with 1 if a file was cut off or has lines that cannot be read; the other lines are taken.
    Example: selfroute batch import results.jsonl
    """

    performed_by: ClassVar[str] = "selfroute_workbench.command.batch:import_results"

    results: Annotated[
        list[Path], typer.Argument(metavar="RESULTS...", help="The files that the provider made of a batch")
    ]
    job: JobFolder = Path("batch")
    as_json: Json = False
