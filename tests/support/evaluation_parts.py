"""Reads what an evaluation kept, and its results by strategy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from selfroute_workbench.evaluation.looks import Result
from selfroute_workbench.evaluation.replies_file import FILE
from selfroute_workbench.evaluation.results import Evaluation


def by_strategy(done: Evaluation) -> dict[str, Result]:
    """The results of one question; nothing may have failed."""
    assert not done.failures, done.failures
    return {one.strategy: one for one in done.results}


def kept(folder: Path) -> list[dict[str, Any]]:
    """The replies that a folder keeps."""
    return [row for line in (folder / FILE).read_text().splitlines() if "text" in (row := json.loads(line))]
