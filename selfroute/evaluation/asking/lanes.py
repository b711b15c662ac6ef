"""Ask the questions on one document after one another, so that the provider's prompt cache still holds it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from threading import Lock

from selfroute.evaluation.questions import Question


class Lanes:
    """Hands out questions to workers, each document's in turn; safe to use from threads.

    The data sets take turns, so that a run which is cut short has some of each.
    """

    def __init__(self, questions: Sequence[Question]) -> None:
        """Start with all questions to be asked."""
        lanes: dict[tuple[str, str], deque[int]] = {}
        for number, question in enumerate(questions):
            # Without a document of its own, nothing is known of what it will read.
            key = question.document_id if question.document else f"{question.id} alone"
            lanes.setdefault((question.dataset, key), deque()).append(number)
        turns: Counter[str] = Counter()
        waiting = []
        for (dataset, _), lane in lanes.items():
            waiting.append((turns[dataset], lane[0], lane))
            turns[dataset] += 1
        self._waiting = deque(lane for *_, lane in sorted(waiting))
        self._begun: dict[int, deque[int]] = {}
        self._lock = Lock()

    def take(self, worker: int) -> int:
        """Return the position of the question that a worker should ask next.

        It stays with the document of its last question. Once no document is left to begin with, it helps with the one
        that has the most questions left.

        Args:
            worker: Identifies the worker.

        Raises:
            IndexError: There are no more questions.
        """
        with self._lock:
            lane = self._begun.get(worker)
            if not lane:
                lane = self._waiting.popleft() if self._waiting else max(self._begun.values(), key=len, default=deque())
                self._begun[worker] = lane
            return lane.popleft()
