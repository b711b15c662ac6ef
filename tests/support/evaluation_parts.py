"""Evaluates pipelines over short documents, and reads what an evaluation kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from both_parts import Pipeline
from selfroute_workbench.evaluation.evaluating import evaluate as evaluate_all
from selfroute_workbench.evaluation.replies_file import FILE
from selfroute_workbench.evaluation.results import Evaluation

STRATEGIES = ("rag", "self_route", "long_context")


def evaluate(pipeline: Any, questions: Any, **options: Any) -> Evaluation:
    """Evaluate without sections, which these documents are too short for."""
    asked = pipeline.asked if isinstance(pipeline, Pipeline) else pipeline
    return evaluate_all(asked, questions, **{"strategies": STRATEGIES, **options})


def kept(folder: Path) -> list[dict[str, Any]]:
    """The replies that a folder keeps."""
    return [row for line in (folder / FILE).read_text().splitlines() if "text" in (row := json.loads(line))]
