"""Adds the notebooks, with their outputs, and the examples to the site. A hook of `mkdocs.yml`."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
# How pandas wants its tables to look; the site has its own way.
_LOOKS = re.compile(r' border="1"| class="dataframe"| style="text-align: right;"|<style.*?</style>', re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and pictures to those of this folder."""
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for name, content in _notebook(path):
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    folder = ROOT / "examples"
    index = re.sub(r"\]\((\w+)\.py\)", r"](\1.md)", (folder / "README.md").read_text("utf-8"))
    files.append(File.generated(config, "examples/index.md", content=index))
    for path in sorted(folder.glob("*.py")):
        page = f"# {path.name}\n\n{_fenced(path.read_text('utf-8'), 'python')}"
        files.append(File.generated(config, f"examples/{path.stem}.md", content=page))
    return files


def _notebook(path: Path) -> Iterator[tuple[str, str | bytes]]:
    """Yield the pictures of a notebook, then its page."""
    parts: list[str] = []
    for number, cell in enumerate(json.loads(path.read_text("utf-8"))["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source.replace(".ipynb)", ".md)").replace("](../docs/", "](../"))
            continue
        if "hide-input" not in cell["metadata"].get("tags", ()):
            parts.append(_fenced(source, "python"))
        for output in cell["outputs"]:
            data: dict[str, Any] = output.get("data", {})
            if "image/png" in data:
                name = f"{path.stem}-{number}.png"
                yield name, base64.b64decode("".join(data["image/png"]))
                parts.append(f"![The chart of this cell]({name})")
            elif "text/html" in data:
                parts.append(_LOOKS.sub("", "".join(data["text/html"])))
            else:
                parts.append(_fenced("".join(output.get("text") or data.get("text/plain", ())), "text"))
    yield f"{path.stem}.md", "\n\n".join(parts)


def _fenced(text: str, language: str) -> str:
    return f"````{language}\n{text.rstrip()}\n````"
