"""`examples/bulk_ray.py` answers what the chain answers; what dies costs nothing but the calls in flight."""

from __future__ import annotations

import json
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import bulk_parts
from examples_parts import EXAMPLES, ROOT, Started, wait_for
from langchain_selfroute import SelfRouteLedger
from loopback import LoopbackServer, Reply, Request

pytest.importorskip("ray", reason="Ray comes with the group ray")

pytestmark = pytest.mark.timeout(600)  # a dozen processes start, where two or three processors are shared

COUNT, ACTORS, AT_ONCE = 600, 2, 4
FAILS = {7, 30, 31}  # the draft of one, and the documents of others


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(answer) as started:
        yield started


def question(number: int) -> str:
    return f"What is number {number} of the {bulk_parts.PLACES[number % 5]}?"


def number_in(request: Request) -> int:
    return int(re.findall(r"^Question: What is number (\d+)", request.prompt, re.MULTILINE)[-1])


def is_draft(request: Request) -> bool:
    return request.body["messages"][-1]["content"].startswith("Passages")


def answer(request: Request) -> Reply:
    """Decline the draft of each third question."""
    number = number_in(request)
    return Reply("unanswerable" if is_draft(request) and number % 3 == 0 else f"It is {number}.", first_delay=0.02)


def sometimes(request: Request) -> Reply:
    """Fail at some questions."""
    return Reply(status=400, error={"message": "No."}) if number_in(request) in FAILS else answer(request)


def asked(server: LoopbackServer) -> Counter[int]:
    """Return how often each question's draft was asked for."""
    return Counter(number_in(entry.request) for entry in server.book if is_draft(entry.request))


def start(server: LoopbackServer, folder: Path) -> Started:
    rows = [{"key": number, "question": question(number)} for number in range(COUNT)]
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = {"--out": "out", "--chain": "bulk_parts:make_chain", "--actors": ACTORS, "--at-once": AT_ONCE}
    command = [EXAMPLES / "bulk_ray.py", "questions.jsonl", *(word for option in options.items() for word in option)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{ROOT / 'tests' / 'support'}:{EXAMPLES}")
        return Started([sys.executable, *map(str, command)], model_at=server.openai_url, cwd=folder)


def end(bulk: Started) -> int:
    """Wait until it ends by itself, and return its exit code."""
    bulk.process.wait(300)
    return bulk.end()


def kill_the_driver(bulk: Started) -> None:
    processes = psutil.Process(bulk.process.pid).children(recursive=True)
    bulk.process.kill()
    assert bulk.end() == -signal.SIGKILL
    psutil.wait_procs(processes, timeout=60)


def kill_an_actor(bulk: Started) -> None:
    children = psutil.Process(bulk.process.pid).children(recursive=True)
    next(one for one in children if "Asker" in "".join(one.cmdline())).kill()
    assert end(bulk) == 1


@pytest.mark.parametrize("kill", [kill_the_driver, kill_an_actor])
def test_bulk_ray_goes_on_after_a_kill(server: LoopbackServer, tmp_path: Path, kill: Callable[[Any], None]) -> None:
    server.answer = sometimes
    with start(server, tmp_path) as bulk:
        wait_for(lambda: len(server.book) >= COUNT // 2, lambda: bulk.text)
        kill(bulk)
    with start(server, tmp_path) as bulk:
        assert end(bulk) == 1, bulk.text
        assert f"{len(FAILS)} failed" in bulk.text
    twice = {number for number, times in asked(server).items() if times > 1}
    assert len(twice - FAILS) <= ACTORS * AT_ONCE
    server.answer = answer
    server.book.clear()
    with start(server, tmp_path) as bulk:
        assert end(bulk) == 0, bulk.text
    assert asked(server) == Counter(FAILS)
    written = (tmp_path / "out" / "answers.jsonl").read_text("utf-8")
    rows: list[Any] = [json.loads(line) for line in written.splitlines()]
    assert [(row["key"], row["answer"]) for row in rows] == [(number, f"It is {number}.") for number in range(COUNT)]
    figures = SelfRouteLedger.read(rows).to_dict()
    assert (figures["queries"], figures["declined"]) == (COUNT, COUNT // 3)
