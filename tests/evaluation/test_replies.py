"""Replies are paid for once: they are kept as they come, whatever ends a run."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selfroute.errors import ConfigurationError
from selfroute.usage import Cost, prices
from selfroute_workbench.evaluation.replies import Replies
from selfroute_workbench.evaluation.replies_file import FILE
from selfroute_workbench.evaluation.reply import Reply
from selfroute_workbench.evaluation.spending import CostCapError, Price

CENT = Decimal("0.01")


def a_cent(_: int) -> Cost:
    return Cost(CENT)


def nobody_knows(_: int) -> Cost:
    return Cost(None, "the model is not in the lists")


class PricedModel:
    """Replies to everything, and counts how often it was asked."""

    def __init__(self, cost: str | None = "0.01") -> None:
        self.asked, self.cost = 0, cost

    def __call__(self) -> Reply:
        self.asked += 1
        return Reply(f"reply {self.asked}", 10, 2, cost=self.cost)


def get(replies: Replies, prompt: object, model: PricedModel, price: Price = a_cent) -> Reply:
    return replies.get(["m", prompt], model, step="rag", price=price)


def test_replies_are_kept(tmp_path: Path) -> None:
    model = PricedModel()
    kept = [get(Replies(tmp_path), prompt, model) for prompt in "abc"]
    later = Replies(tmp_path)
    assert [get(later, prompt, model) for prompt in "abc"] == kept
    assert (later.kept, later.asked, model.asked, later.spending.spent) == (3, 0, 3, 3 * CENT)


@settings(max_examples=60)
@given(cut=st.integers(min_value=0, max_value=10_000), texts=st.lists(st.text(), min_size=1, max_size=4, unique=True))
def test_replies_cut_off(tmp_path_factory: pytest.TempPathFactory, cut: int, texts: list[str]) -> None:
    folder = tmp_path_factory.mktemp("run")
    for text in texts:
        Replies(folder).get(text, lambda text=text: Reply(text, 1, 1), step="rag", price=a_cent)  # type: ignore[misc]
    content = (folder / FILE).read_bytes()
    (folder / FILE).write_bytes(content[: cut % (len(content) + 1)])
    whole = sum(b'"text"' in line and line.endswith(b"}") for line in (folder / FILE).read_bytes().split(b"\n"))
    again = Replies(folder)
    assert again.kept == whole
    for text in texts:
        assert again.get(text, lambda text=text: Reply(text, 1, 1), step="rag", price=a_cent).text == text  # type: ignore[misc]
    assert again.asked == len(texts) - whole
    rows = [json.loads(line) for line in (folder / FILE).read_bytes().split(b"\n") if line]
    assert sorted(row["text"] for row in rows if row.get("text") is not None and row["cost"] is None) == sorted(texts)


WELL = {"key": "k", "step": "rag", "text": "t", "input_tokens": 1, "output_tokens": 1}
DAMAGED: dict[str, bytes | dict[str, object]] = {
    "no fields": {},
    "null": b"null",
    "a list": b"[1]",
    "no JSON": b"what",
    "no text": {"key": "k", "step": "rag", "strange": 1},
    "a zero byte": b"\0",
    "no UTF-8": b'{"key": "\xff"}',
    "nested brackets": b"[" * 100_000,
    "a number of thousands of digits": b"1" * 5000,
    "a key that is a list": {**WELL, "key": []},
    "a step that is a dict": {**WELL, "step": {}},
    "fewer tokens than none": {**WELL, "input_tokens": -1},
    "tokens that are text": {**WELL, "output_tokens": "1"},
    "tokens that no float holds": {**WELL, "output_tokens": 10**400},
    "an endless time": {**WELL, "seconds": float("inf")},
    "a negative cost": {**WELL, "cost": "-0.01"},
    "a cost that is not a number": {**WELL, "cost": "NaN"},
    "a cost without bounds": {**WELL, "cost": "1e999999999"},
    "a model that is a list": {**WELL, "model": [[1]]},
    "a note of a call with a negative cost": {"key": "k", "step": "rag", "asked": "-1"},
    "a note of a call without a key": {"step": "rag", "asked": "0.01"},
}


def damaged(name: str) -> bytes:
    damage = DAMAGED[name]
    return damage if isinstance(damage, bytes) else json.dumps(damage).encode()


@pytest.mark.parametrize("name", DAMAGED)
def test_replies_damaged_line(tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str) -> None:
    model = PricedModel()
    get(Replies(tmp_path), "a", model)
    with (tmp_path / FILE).open("ab") as file:
        file.write(damaged(name) + b"\n")
    get(Replies(tmp_path), "b", model)
    [told] = caplog.messages
    assert told.startswith(f"{tmp_path / FILE}:3 ")
    assert "asked again" in told
    assert (Replies(tmp_path).kept, Replies(tmp_path).spending.spent) == (2, 2 * CENT)


def test_replies_lost_calls(tmp_path: Path) -> None:
    note = {"key": "k", "step": "rag", "asked": "0.01", "other": 1}
    (tmp_path / FILE).write_text("".join(json.dumps({**note, "key": key}) + "\n" for key in "ab"))
    for _ in range(2):
        with Replies(tmp_path) as replies:
            assert (replies.spending.lost, replies.spending.spent, replies.kept) == ([CENT] * 2, 2 * CENT, 0)
            assert "$0.0200 in all, $0.0200 of it expected for 2 on their way" in replies.summary


def test_replies_threads_ask_in_turn() -> None:
    replies, waiting, at_once, most = Replies(), threading.Barrier(8, timeout=10), [0], [0]

    def ask(number: int) -> str | None:
        def model() -> Reply:
            at_once[0] += 1
            most[0] = max(most[0], at_once[0])
            time.sleep(0.01)
            at_once[0] -= 1
            if number % 2:
                raise TimeoutError
            return Reply("reply", 1, 1)

        waiting.wait()
        with suppress(TimeoutError):
            return replies.get("a", model, step="rag", price=a_cent).text
        return None

    with ThreadPoolExecutor(8) as threads:
        texts = list(threads.map(ask, range(8)))
    assert texts[::2] == ["reply"] * 4
    assert (most, replies.asked, len(replies._asking)) == ([1], 1, 0)


def test_cap() -> None:
    replies, model = Replies(max_cost=Decimal("0.025")), PricedModel()
    get(replies, "a", model)
    get(replies, "b", model)
    with pytest.raises(CostCapError, match=r"could pass the cap of \$0\.025"):
        get(replies, "c", model)
    assert get(replies, "a", model).text == "reply 1"
    assert model.asked == 2


KILLED = """
import os, signal, sys
from decimal import Decimal
from pathlib import Path
from selfroute_workbench.evaluation.replies import Replies
from selfroute.usage import Cost

def ask():
    os.kill(os.getpid(), signal.SIGKILL)

Replies(Path(sys.argv[1])).get(["m", "a"], ask, step="rag", price=lambda _: Cost(Decimal("0.01")))
"""


def test_cap_counts_killed_runs(tmp_path: Path) -> None:
    model = PricedModel()
    with Replies(tmp_path) as first:
        get(first, "known", model)
    for number in (1, 2):
        killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)  # noqa: S603 - our own program
        assert killed.returncode == -signal.SIGKILL
        with Replies(tmp_path) as later:
            assert (later.spending.lost, later.spending.spent, later.kept) == ([CENT] * number, (1 + number) * CENT, 1)
    with Replies(tmp_path, max_cost=4 * CENT) as last:
        get(last, "a", model)  # what was lost is paid for again, and both count
        assert "$0.0400 in all, $0.0200 of it expected for 2 on their way when a run was killed" in last.summary
        with pytest.raises(CostCapError):
            get(last, "b", model)
    assert Replies(tmp_path).spending.spent == 4 * CENT


def test_cap_counts_replies_on_their_way() -> None:
    replies, inside, done = Replies(max_cost=CENT), threading.Event(), threading.Event()
    get(replies, "the first of its kind, which all others wait for", PricedModel("0"), lambda _: Cost(Decimal(0)))

    def slow() -> Reply:
        inside.set()
        assert done.wait(10)
        return Reply("slow", 1, 1, cost="0.001")

    thread = threading.Thread(target=lambda: replies.get("a", slow, step="rag", price=a_cent))
    thread.start()
    assert inside.wait(10)
    with pytest.raises(CostCapError):
        get(replies, "b", PricedModel())
    done.set()
    thread.join()
    with pytest.raises(CostCapError):
        get(replies, "b", PricedModel())
    assert get(replies, "b", PricedModel("0.001"), lambda _: Cost(Decimal("0.009"))).text == "reply 1"


def test_cap_needs_a_price() -> None:
    model = PricedModel()
    with pytest.raises(ConfigurationError, match="the model is not in the lists"):
        get(Replies(max_cost=CENT), "a", model, nobody_knows)
    assert model.asked == 0
    assert get(Replies(), "a", model, nobody_knows).text == "reply 1"


def test_cap_with_unpriced_replies(tmp_path: Path) -> None:
    with Replies(tmp_path, max_cost=CENT) as replies:
        get(replies, "a", PricedModel(None))
        with pytest.raises(CostCapError, match="no price is known for 1 of the replies so far"):
            get(replies, "b", PricedModel())
    with Replies(tmp_path, max_cost=CENT) as later, pytest.raises(CostCapError, match="no price is known"):
        get(later, "b", PricedModel())


def test_cap_expects_the_longest_reply() -> None:
    replies, most, at_once = Replies(max_cost=50 * CENT), 0, 0
    lock = threading.Lock()

    def thinks() -> Reply:
        nonlocal most, at_once
        with lock:
            at_once += 1
            most = max(most, at_once)
        threading.Event().wait(0.01)
        with lock:
            at_once -= 1
        return Reply("seven", 1, 10_000, cost="0.1")

    def ask(number: int) -> None:
        with suppress(CostCapError):
            replies.get(number, thinks, step="rag", price=lambda output: Cost(Decimal(output) / 100_000))

    with ThreadPoolExecutor(16) as threads:
        list(threads.map(ask, range(40)))
    assert replies.spending.spent == 50 * CENT
    assert 1 < most <= 5


def test_replies_one_run_at_a_time(tmp_path: Path) -> None:
    with Replies(tmp_path) as first:
        get(first, "a", PricedModel())
        with pytest.raises(ConfigurationError, match="another run keeps its replies in"):
            Replies(tmp_path)
    assert Replies(tmp_path).kept == 1


def test_replies_lone_surrogate(tmp_path: Path) -> None:
    model = PricedModel()
    for _ in range(2):
        with Replies(tmp_path) as replies:
            reply = replies.get("a", lambda: Reply("yes \ud83d", model().input_tokens, 1), step="rag", price=a_cent)
            assert reply.text == "yes \ud83d"
    assert model.asked == 1


def test_replies_identity(tmp_path: Path) -> None:
    nameless = prices.PricedModel()
    Replies().identity(nameless, None, step="rag")
    with Replies(tmp_path) as replies:
        with pytest.raises(
            ConfigurationError, match=r"the model of the step rag does not report its name.*name=\.\.\."
        ):
            replies.identity(nameless, None, step="rag")
        assert replies.identity(nameless, "mine", step="rag") != replies.identity(nameless, "yours", step="rag")
