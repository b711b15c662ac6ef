"""What holds people's text is for nobody but the user, whatever the umask is."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from choosing_parts import evaluated, made_up
from command_parts import QUESTION, Run, model
from loopback import LoopbackServer
from selfroute.usage.counts import Cost
from selfroute_workbench.demo import corpus
from selfroute_workbench.evaluation.replies import Replies
from selfroute_workbench.evaluation.reply import Reply
from writing_parts import ScriptedWriter, is_writing

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows knows no such permissions")


@pytest.fixture(autouse=True)
def _usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def seen_by_others(*paths: Path) -> list[str]:
    """What others may look into, with its permissions."""
    every = [each for path in paths for each in (path, *path.rglob("*"))]
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in every}
    return [f"{name} {mode:o}" for name, mode in modes.items() if mode & 0o077]


def asking(run: Run, server: LoopbackServer) -> None:
    assert run("ask", "ferry.md", "-q", QUESTION, "--embeddings", "any").code == 0


def evaluating(run: Run, server: LoopbackServer) -> None:
    Path("q.jsonl").write_text('{"question": "Who?", "answers": ["Orla"], "document_file": "ferry.md"}\n')
    assert run("evaluate", "q.jsonl", *model(server)).code == 0


def writing_questions(run: Run, server: LoopbackServer) -> None:
    writer = ScriptedWriter()
    server.answer = lambda request: writer(request) if is_writing(request) else "unanswerable"
    Path("harbour.md").write_text(next(iter(corpus.load_documents().values())))
    result = run("questions", "harbour.md", "--n", "2", "--unanswerable", "0", *model(server))
    assert Path("questions.jsonl").exists(), result.err


def saving(run: Run, server: LoopbackServer) -> None:
    evaluation = evaluated(made_up(60, 20), model="openai:any")
    evaluation.save("saved")


def keeping_replies(run: Run, server: LoopbackServer) -> None:
    def ask() -> Reply:
        assert Path("new/kept/looks.jsonl").exists()
        assert seen_by_others(Path("new")) == []
        return Reply("text", 1, 1)

    with Replies(Path("new/kept")) as replies:
        replies.get("a", ask, step="rag", price=lambda _: Cost(Decimal(1)))


WRITERS: dict[str, Callable[[Run, LoopbackServer], None]] = {
    "ask": asking,
    "evaluate": evaluating,
    "questions": writing_questions,
    "save": saving,
    "replies": keeping_replies,
}


@pytest.mark.parametrize("writer", WRITERS)
def test_private_writers(run: Run, server: LoopbackServer, tmp_path: Path, writer: str) -> None:
    (tmp_path / "cache").mkdir()  # where others' packages keep what they like
    given = {"ferry.md", "q.jsonl", "harbour.md", "cache"}
    WRITERS[writer](run, server)
    written = [path for path in (*tmp_path.iterdir(), tmp_path / "cache/selfroute") if path.name not in given]
    assert [path for path in written if path.exists()]
    assert seen_by_others(*(path for path in written if path.exists())) == []


def test_private_index_in_own_folder(run: Run, tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir(0o755)
    asked = ("ask", "ferry.md", "-q", QUESTION, "--embeddings", "any", "--store", "store")
    assert [run(*asked).code for _ in range(2)] == [0, 0]
    assert list(store.iterdir())
    assert (stat.S_IMODE(store.stat().st_mode), seen_by_others(*store.iterdir())) == (0o755, [])
    assert os.umask(0o022) == 0o022
