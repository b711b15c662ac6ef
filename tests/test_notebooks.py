"""The notebooks run as they are committed, with outputs that show what they promise."""

from itertools import groupby
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))
named = pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
# The kernel's client still asks for an event loop policy of its own, and says that it talks over TCP.
known = pytest.mark.filterwarnings("ignore::DeprecationWarning:zmq", "ignore::RuntimeWarning:zmq")


def outputs(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def shape(notebook: Any) -> list[list[str]]:
    """What kinds of output each cell has: words differ with the machine's arithmetic, pieces with its speed."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [[kind for kind, _ in groupby(output.output_type for output in cell.outputs)] for cell in cells]


@known
@named
def test_a_notebook_runs_offline_and_shows_as_much_as_is_committed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("ANONYMIZED_TELEMETRY", "False")
    committed = nbformat.read(path, as_version=4)
    fresh = nbformat.read(path, as_version=4)
    NotebookClient(fresh, timeout=600, kernel_name="python3").execute()
    assert shape(fresh) == shape(committed)


@named
def test_a_notebook_is_committed_with_its_outputs_and_a_plot(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))
    assert any("image/png" in output.get("data", {}) for output in outputs(notebook))
    assert not [o for o in outputs(notebook) if o.output_type == "error" or o.get("name") == "stderr"]
