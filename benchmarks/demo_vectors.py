"""Make the vectors that the demo ships: `python benchmarks/demo_vectors.py`, with the extra embeddings installed."""

from __future__ import annotations

from pathlib import Path

import selfroute_workbench.demo
from selfroute_workbench.command.texts import Text, split
from selfroute_workbench.demo.corpus import load_documents, load_questions
from selfroute_workbench.demo.vectors import pack
from selfroute_workbench.demo.with_langchain import load_embeddings


def texts() -> list[str]:
    """Return the passages and questions of the demo."""
    passages = [passage for name, text in load_documents().items() for passage in split(Text(name, text))]
    return [passage.page_content for passage in passages] + [question.question for question in load_questions()]


def main() -> None:
    """Write them."""
    path = Path(selfroute_workbench.demo.__path__[0]) / "recording" / "vectors.npz"
    path.write_bytes(pack(texts(), load_embeddings().embed_documents(texts())))
    print(f"{path}: {len(texts())} vectors, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
