"""The options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Files = Annotated[list[Path], typer.Argument(metavar="FILE...", help="UTF-8 text files")]
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
K = Annotated[int, typer.Option("--k", min=1, help="How many passages to retrieve")]
EmbeddingModel = Annotated[
    str | None,
    typer.Option(metavar="NAME_OR_PATH", help="A sentence-transformers model [default: all-MiniLM-L6-v2]"),
]
Graded = Annotated[
    bool,
    typer.Option("--graded", help="Ask the model how sure it is: doubted answers read more, hopeless questions stop"),
]
Widen = Annotated[
    int | None, typer.Option(min=1, help="Look at so many passages before whole documents, for example 16")
]
Reader = Annotated[
    bool,
    typer.Option("--reader", help="Answer with the sentence nearest to the question, without a language model"),
]
Json = Annotated[bool, typer.Option("--json", help="Print nothing but JSON on stdout")]
