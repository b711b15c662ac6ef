"""`examples/bulk_ray.py` answers what the chain answers; what dies or fails costs nothing but what was in flight."""

from __future__ import annotations

import json
import re
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from langchain_core.runnables import RunnableConfig

import bulk_parts
import loopback
from examples_parts import EXAMPLES, ROOT, Started, load, wait_for
from langchain_selfroute import SelfRouteChain, SelfRouteLedger
from loopback import LoopbackServer, Reply, Request

pytest.importorskip("ray", reason="Ray comes with the extra ray")
import pyarrow as pa
import pyarrow.dataset as pads

pytestmark = pytest.mark.timeout(900)  # a dozen processes start, where two or three processors are shared

Json = dict[str, Any]
BLOCK, ACTORS = 16, 2
FAILS = {7, 30, 31}  # the draft of one, and the second step of others


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(answer) as started:
        yield started


@pytest.fixture
def chain(server: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> SelfRouteChain:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
    return bulk_parts.make_chain()


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
    """Fail at the draft of some questions, or at their second step."""
    failing = number_in(request) in FAILS and not (is_draft(request) and number_in(request) % 3 == 0)
    return Reply(status=400, error={"message": "No."}) if failing else answer(request)


def calls(server: LoopbackServer, *, drafts: bool) -> Counter[int]:
    """Return how often each question was asked in a step."""
    return Counter(number_in(entry.request) for entry in server.book if is_draft(entry.request) is drafts)


def write_questions(folder: Path, count: int) -> None:
    rows = [{"key": number, "question": question(number)} for number in range(count)]
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def start(server: LoopbackServer, folder: Path) -> Started:
    options = {"--out": "out", "--chain": "bulk_parts:make_chain", "--actors": ACTORS, "--at-once": 4, "--block": BLOCK}
    command = [EXAMPLES / "bulk_ray.py", "questions.jsonl", *(word for option in options.items() for word in option)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT / "tests" / "support"))
        return Started([sys.executable, *map(str, command)], model_at=server.openai_url, cwd=folder)


def end(bulk: Started) -> int:
    """Wait until it ends by itself, which takes minutes where much else runs, and return its exit code."""
    bulk.process.wait(600)
    return bulk.end()


def answers_in(folder: Path) -> list[Json]:
    rows = [json.loads(line) for line in (folder / "out" / "answers.jsonl").read_text("utf-8").splitlines()]
    return sorted(rows, key=lambda row: int(row["key"]))


async def answered_by(chain: SelfRouteChain, count: int) -> tuple[list[Json], SelfRouteLedger]:
    """Return the rows that the chain itself would write, and its ledger."""
    ledger = SelfRouteLedger()
    config = RunnableConfig(max_concurrency=8, callbacks=[ledger])
    outputs: list[Any] = await chain.abatch([question(number) for number in range(count)], config)
    kept = ("answer", "route", "answerable", "decision", "usage")
    rows = [
        {"key": number, "question": question(number), **{key: output[key] for key in kept}}
        for number, output in enumerate(outputs)
    ]
    return json.loads(json.dumps(rows)), ledger


def without_savings(rows: list[Json]) -> list[Json]:
    """Leave out what a chain knows only of documents that it has read before."""
    known_later = ("long_context_only", "token_ratio", "ledger")
    return [{**row, "usage": {k: v for k, v in row["usage"].items() if k not in known_later}} for row in rows]


async def test_both_steps_answer_as_the_chain_does_and_an_error_is_a_result_that_keeps_its_draft(
    server: LoopbackServer, chain: SelfRouteChain
) -> None:
    bulk = load("bulk_ray")
    rows, _ = await answered_by(chain, 12)
    asked = bulk.numbered({"key": number, "question": question(number)} for number in range(12))
    first, second = bulk.Drafts(lambda: chain, 4), bulk.Answers(lambda: chain, 4)
    drafts = [await first(row) for row in asked]
    left = [row for row in drafts if row["documents"]]
    assert [row["id"] for row in left] == [0, 3, 6, 9]
    assert {row["documents"] for row in left} == {'["harbour"]', '["station"]', '["quarry"]', '["brewery"]'}
    piece = {"id": 0, "rows": json.dumps(left)}
    answers = [row for row in drafts if not row["documents"]] + json.loads((await second(piece))["rows"])
    told = [{**json.loads(row["question"]), **json.loads(row["result"])} for row in answers]
    assert without_savings(sorted(told, key=lambda row: int(row["key"]))) == without_savings(rows)

    server.answer = lambda _: Reply(status=400, error={"message": "No."})
    (failed,) = json.loads((await second({"id": 3, "rows": json.dumps(left[1:2])}))["rows"])
    result = json.loads(failed["result"])
    assert result.pop("error") == "OpenAIInvalidRequestError: No."
    assert result == json.loads(left[1]["result"])
    (again,) = [await first(row) for row in bulk.numbered(iter([{"question": question(1)}]))]
    assert json.loads(again["result"]).keys() == {"error"}
    assert again["documents"] == ""


def test_questions_on_the_same_documents_are_cut_into_pieces_of_which_each_has_an_id() -> None:
    bulk = load("bulk_ray")
    rows = [{"id": number, "question": "{}", "result": "{}", "documents": "x"} for number in range(5, 150)]
    cut = bulk.pieces(pa.Table.from_pylist(rows)).to_pylist()
    assert [(piece["id"], len(json.loads(piece["rows"]))) for piece in cut] == [(5, 64), (69, 64), (133, 17)]
    assert [row["id"] for piece in cut for row in json.loads(piece["rows"])] == list(range(5, 150))


def test_a_folder_takes_the_questions_of_one_file_and_goes_on_with_them(tmp_path: Path) -> None:
    bulk, out = load("bulk_ray"), tmp_path / "out"
    write_questions(tmp_path, 3)
    folder = bulk.open_round(out, tmp_path / "questions.jsonl")
    assert bulk.open_round(out, tmp_path / "questions.jsonl") == folder
    rows = pads.dataset(folder / "questions.parquet").to_table().to_pylist()
    assert [(row["id"], json.loads(row["question"])["question"]) for row in rows] == [
        (number, question(number)) for number in range(3)
    ]
    write_questions(tmp_path, 4)
    with pytest.raises(ValueError, match="take another folder for --out"):
        bulk.open_round(out, tmp_path / "questions.jsonl")
    (tmp_path / "wrong.jsonl").write_text('{"query": "A?"}\n')
    with pytest.raises(ValueError, match="there is no question in"):
        bulk.open_round(tmp_path / "other", tmp_path / "wrong.jsonl")


def test_what_is_wrong_with_a_chain_is_said_before_ray_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_questions(tmp_path, 1)
    (tmp_path / "wrong_chain.py").write_text("def make():\n    raise ValueError('there is no such store')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "argv", ["bulk_ray.py", "questions.jsonl", "--chain", "wrong_chain:make"])
    with pytest.raises(SystemExit):
        load("bulk_ray").main()
    assert "error: there is no such store" in capsys.readouterr().err
    assert not (tmp_path / "bulk").exists()


@pytest.mark.parametrize("name", ["questions.txt", "questions.jsonl", "questions.parquet"])
def test_questions_are_lines_or_rows(tmp_path: Path, name: str) -> None:
    bulk, rows = load("bulk_ray"), [{"question": "A?"}, {"question": "{B}?"}]
    failed = [{**row, "error": "No."} for row in rows]
    assert [json.loads(row["question"]) for row in bulk.numbered(iter(failed))] == rows
    (tmp_path / "questions.txt").write_text("A?\n\n {B}? \n", "utf-8-sig")
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, rows)))
    pads.write_dataset(pa.Table.from_pylist(rows), tmp_path / "parts", format="parquet")
    (tmp_path / "parts" / "part-0.parquet").rename(tmp_path / "questions.parquet")
    assert list(bulk.read_questions(tmp_path / name)) == rows


@pytest.mark.matrix
async def test_an_actor_that_is_killed_is_replaced_and_all_is_answered_as_by_one_chain(
    server: LoopbackServer, chain: SelfRouteChain, tmp_path: Path
) -> None:
    count, least = 400, 400 + 134
    write_questions(tmp_path, count)
    with start(server, tmp_path) as bulk:
        wait_for(lambda: len(server.book) >= 100, lambda: bulk.text)
        actors = [process for process in psutil.Process(bulk.process.pid).children(recursive=True) if is_actor(process)]
        assert len(actors) == ACTORS
        actors[0].kill()
        assert end(bulk) == 0, bulk.text
    assert least <= len(server.book) <= least + 2 * BLOCK  # it had two blocks in hand
    server.book.clear()
    rows, ledger = await answered_by(chain, count)
    found = answers_in(tmp_path)
    assert without_savings(found) == without_savings(rows)
    shown, expected = SelfRouteLedger.read(found).to_dict(), ledger.to_dict()
    for key in ("queries", "routes", "declined", "unanswerable", "tokens", "failed"):
        assert shown[key] == expected[key]


def kill_the_driver(server: LoopbackServer, folder: Path, *, step: str, after: int) -> set[int]:
    """Kill the driver once so much of a step is kept; return the ids of what is kept then."""
    kept = folder / "out" / "round-001" / f"{step}.checkpoint"
    with start(server, folder) as bulk:
        wait_for(lambda: len(committed(kept)) == after, lambda: bulk.text)
        processes = psutil.Process(bulk.process.pid).children(recursive=True)
        bulk.process.kill()
        assert end(bulk) == -signal.SIGKILL
        psutil.wait_procs(processes, timeout=60)
    server.settle(30)
    return committed(kept)


def is_actor(process: psutil.Process) -> bool:
    return any("MapWorker" in word for word in process.cmdline())


@pytest.mark.matrix
def test_a_driver_that_is_killed_goes_on_and_what_failed_is_asked_again(
    server: LoopbackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, whole = 400, 9 * BLOCK
    write_questions(tmp_path, count)
    monkeypatch.setattr(loopback, "A_MINUTE", 600.0)
    server.answer = lambda request: (
        Reply("Later.", hold_after=0) if number_in(request) > whole + BLOCK / 2 else sometimes(request)
    )
    before = kill_the_driver(server, tmp_path, step="drafts", after=whole)
    asked = calls(server, drafts=True)
    assert whole < sum(asked.values()) <= whole + 2 * ACTORS * BLOCK  # each had two blocks in hand
    server.answer = sometimes
    server.book.clear()
    with start(server, tmp_path) as bulk:
        assert end(bulk) == 1, bulk.text
    assert calls(server, drafts=True) == Counter(set(range(count)) - before)
    assert calls(server, drafts=False) == Counter(range(0, count, 3))
    assert "3 failed" in bulk.text
    rows = answers_in(tmp_path)
    assert [row["key"] for row in rows] == list(range(count))
    assert {row["key"] for row in rows if row.get("error")} == FAILS

    server.book.clear()
    server.answer = answer
    with start(server, tmp_path) as bulk:
        assert end(bulk) == 0, bulk.text
    assert calls(server, drafts=True) == Counter({7, 31})
    assert calls(server, drafts=False) == Counter({30})
    assert [(row["key"], row["answer"]) for row in answers_in(tmp_path)] == [(n, f"It is {n}.") for n in range(count)]
    assert SelfRouteLedger.read(answers_in(tmp_path)).to_dict()["queries"] == count


@pytest.mark.matrix
def test_a_driver_that_is_killed_in_the_second_step_asks_no_draft_again(
    server: LoopbackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, escalated = 400, set(range(0, 400, 3))
    write_questions(tmp_path, count)
    monkeypatch.setattr(loopback, "A_MINUTE", 600.0)
    held = {number for number in escalated if number % 5 in {2, 3} and number > 100}  # of two documents
    server.answer = lambda request: (
        Reply("Later.", hold_after=0) if not is_draft(request) and number_in(request) in held else answer(request)
    )
    kept = kill_the_driver(server, tmp_path, step="answers", after=3)
    answered = {number % 5 for number in kept}  # of the first question on each document
    server.answer = answer
    server.book.clear()
    with start(server, tmp_path) as bulk:
        assert end(bulk) == 0, bulk.text
    assert calls(server, drafts=True) == Counter()
    assert calls(server, drafts=False) == Counter(number for number in escalated if number % 5 not in answered)
    assert [(row["key"], row["answer"]) for row in answers_in(tmp_path)] == [(n, f"It is {n}.") for n in range(count)]


def committed(folder: Path) -> set[int]:
    """Return the ids of the questions, or of the pieces, that are kept."""
    files = [str(path) for path in folder.glob("*.parquet") if not path.name.endswith(".pending.parquet")]
    return set(pads.dataset(files).to_table()["id"].to_pylist()) if files else set()
