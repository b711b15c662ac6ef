"""The command in a folder of its own, and how a call of it ended."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from loopback import LoopbackServer

FERRY = "# Ferry\n\nThe ferry leaves Haldon pier at seven in the morning. On Sundays nobody sails.\n"
QUESTION = "When does the ferry leave Haldon pier?"
ANSWER = "The ferry leaves Haldon pier at seven in the morning."


@dataclass
class Result:
    """How a call of the command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The JSON that it printed."""
        return dict(json.loads(self.out))

    @property
    def words(self) -> str:
        """What it printed, on one line."""
        return " ".join(self.out.split())

    def has(self, *patterns: str) -> bool:
        """Whether it printed lines with all of these expressions."""
        missing = [each for each in patterns if not re.search(each, self.out, re.MULTILINE)]
        assert missing == [], self.out
        return True


Run = Callable[..., Result]


def model(server: LoopbackServer) -> list[str]:
    return ["--model", "openai:test", "--base-url", server.openai_url]
