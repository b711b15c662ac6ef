"""The texts of the demo, read as files, for tests that run where the workbench is not installed."""

from pathlib import Path

_FOLDER = Path(__file__).parents[2] / "workbench" / "selfroute_workbench" / "demo" / "documents"


def load_documents() -> dict[str, str]:
    """Return the documents by name."""
    return {path.name: path.read_text("utf-8") for path in sorted(_FOLDER.glob("*.md"))}
