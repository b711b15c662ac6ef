"""Results to look at: rows as chains write them, and an evaluation, with something of everything."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from look_parts import a_look, a_question
from selfroute_workbench.evaluation.looks import Failure, Look, Passage
from selfroute_workbench.evaluation.results import Evaluation


class Page(HTMLParser):
    """The elements of a page, and the texts in each kind."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open = tag

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self._open, []).append(data)

    @property
    def marks(self) -> list[str]:
        return [attributes["data-marks"] or "" for tag, attributes in self.tags if tag == "article"]

    def shape(self) -> list[tuple[str, tuple[str, ...]]]:
        """The elements with the names of their attributes."""
        return [(tag, tuple(attributes)) for tag, attributes in self.tags]


HOSTILE = "</script><img src=x onerror=alert(1)>\u2028{{ 7*7 }} \" onmouseover='alert(1)'"
MINUTES = f"It began at nine. {'They spoke of tea. ' * 400}Ms Okafor chaired it. {'They spoke of rain. ' * 400}"
STOP = {"go": False, "by": "Budget", "reason": "it would take 4,100 of 4,000 tokens"}


def usage(
    rag: int | None = None,
    long_context: int | None = None,
    *,
    long_context_only: int | None = None,
    cost: str | None = None,
    cost_long_context_only: str | None = None,
) -> dict[str, Any]:
    """The usage of a chain, from the input tokens of its steps; each step writes one token."""

    def counts(tokens: int | None) -> dict[str, int] | None:
        return None if tokens is None else {"input_tokens": tokens, "output_tokens": 1, "cached_tokens": 0}

    return {
        "rag": counts(rag),
        "long_context": counts(long_context),
        "total_tokens": sum(step + 1 for step in (rag, long_context) if step is not None),
        "estimated": False,
        "long_context_only": long_context_only,
        "token_ratio": None,
        "cost": cost,
        "cost_long_context_only": cost_long_context_only,
        "cost_unknown": None if cost else "no price",
    }


def a_row(question: str = "Who chaired the meeting?", **fields: Any) -> dict[str, Any]:
    """A row of a question that was escalated and answered, as a chain returns it."""
    start = MINUTES.index("Ms Okafor")
    sentence = "Ms Okafor chaired it."
    usual = {
        "input": question,
        "retrieved": [{"page_content": "It began at nine.", "metadata": {"source": "minutes"}}],
        "context": [{"page_content": MINUTES, "metadata": {"source": "minutes"}}],
        "answer": "Ms Okafor",
        "route": "long_context",
        "answerable": True,
        "decision": {"declined": True, "signal": "phrase", "evidence": "does not say who chaired", "ruling": None},
        "citations": [
            {
                "document": 0,
                "source": "minutes",
                "start": start,
                "end": start + len(sentence),
                "text": sentence,
                "score": 0.9,
            }
        ],
        "usage": usage(100, 9000, long_context_only=9000, cost="0.02", cost_long_context_only="0.018"),
    }
    return {**usual, **fields}


def from_passages(question: str = "When did it begin?", **fields: Any) -> dict[str, Any]:
    """A row of a question that the passages answered."""
    usual = {
        "answer": "At nine.",
        "route": "rag",
        "decision": {"declined": False, "signal": "answered", "evidence": "", "ruling": None},
        "citations": [],
        "context": [{"page_content": "It began at nine.", "metadata": {"source": "minutes"}}],
        "usage": usage(100, long_context_only=9000, cost="0.001", cost_long_context_only="0.018"),
    }
    return a_row(question, **{**usual, **fields})


def some_rows() -> list[dict[str, Any]]:
    """One row for each way in which a question may end."""
    declined = {"answer": "unanswerable", "answerable": False, "citations": []}
    ruled = {**a_row()["decision"], "ruling": STOP}
    return [
        a_row(),
        from_passages(),
        a_row("Why did they speak of tea?", **declined, usage=usage(100, 9500, long_context_only=9500, cost="0.05")),
        from_passages("Who stopped it?", **declined, decision=ruled),
        a_row(HOSTILE, answer=HOSTILE, retrieved=[{"page_content": HOSTILE}], context=[], citations=[]),
        {"question": "What failed?", "error": f"RateLimitError: {HOSTILE}"},
    ]


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def an_evaluation_to_view() -> Evaluation:
    """An evaluation of four questions: answered by the passages, escalated and lost, escalated for good, failed."""
    kept = [Passage("It began at nine.", 0.5), Passage(f"{HOSTILE} It ended at noon.", 0.4)]
    document = f"It began at nine. {HOSTILE} It ended at noon."
    looks: list[Look] = []
    for name, draft, scores in (
        ("begin", {"answer": "It began at nine."}, (1.0, 1.0)),
        ("lost", {"answer": "The text does not say.", "declined": True}, (0.0, 0.0)),
        ("gained", {"answer": "The text does not say.", "declined": True}, (0.0, 1.0)),
    ):
        looks += [
            a_look("rag", **{"id": name, "passages": kept, "score": scores[0], **draft}),
            a_look("long_context", "noon", id=name, score=scores[1]),
        ]
    questions = [a_question(name, document=document) for name in ("begin", "lost", "gained", "failed")]
    failures = [Failure("minutes", "failed", "rag", HOSTILE)]
    settings = {"strategies": ["rag", "self_route", "long_context"], "model": "m", "temperature": None}
    return Evaluation(questions, looks, failures, settings)
