"""`selfroute chat`: a conversation in a terminal, or through a pipe."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from command_parts import ANSWER, FERRY, QUESTION, Result, Run, model
from loopback import LoopbackServer, Reply, Request
from selfroute.usage.tokens import count_tokens
from selfroute_workbench.command.chatting import MOST_TOKENS, remembering
from selfroute_workbench.command.sessions import Turn

AT_SEVEN, NOBODY = "The ferry leaves at seven.", "On Sundays nobody sails."
FOLLOWED, ALONE = "And on Sundays?", "When does the ferry leave Haldon pier on Sundays?"

Chat = Callable[..., Result]


@pytest.fixture
def chat(run: Run, monkeypatch: pytest.MonkeyPatch) -> Chat:
    """The chat, with the lines that are piped into it."""

    def call(lines: list[str], *args: str) -> Result:
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO("\n".join(lines).encode())))
        return run("chat", "ferry.md", *args)

    return call


def is_rewording(request: Request) -> bool:
    return "Rewrite the question" in request.prompt


def answered(request: Request) -> str:
    if is_rewording(request):
        return ALONE
    return NOBODY if "Sundays?" in request.prompt else AT_SEVEN


def test_a_line_in_another_encoding_is_a_question_like_others(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for errors in ("strict", "surrogateescape"):  # the latter is Python's choice in the locales C and POSIX
        lines = TextIOWrapper(BytesIO(b"\xc4hm\r\n" + QUESTION.encode()), encoding="utf-8", errors=errors)
        monkeypatch.setattr(sys, "stdin", lines)
        result = run("chat", "ferry.md")
        assert (result.code, ANSWER in result.out) == (0, True), result.err


def test_a_follow_up_is_searched_for_by_itself_and_answered_with_the_history(
    chat: Chat, server: LoopbackServer
) -> None:
    server.answer = answered
    result = chat([QUESTION, "", FOLLOWED], *model(server))
    assert (result.code, len(server.book)) == (0, 3), result.err
    first, rewording, second = (entry.request for entry in server.book)
    assert QUESTION in rewording.prompt
    assert AT_SEVEN in rewording.prompt
    assert AT_SEVEN not in first.prompt
    assert (AT_SEVEN in second.prompt, FOLLOWED in second.prompt) == (True, True)
    assert [each.stream for each in (first, second)] == [True, True]
    told = " ".join(result.out.split())
    assert f"Question {QUESTION} Route rag Answer {AT_SEVEN} Where ferry.md, line 3" in told
    assert f"Read as {ALONE} Route rag" in told
    tokens = [int(count) for count in re.findall(r"^Tokens +(\d+)", result.out, re.MULTILINE)]
    assert re.search(rf"^tokens +{sum(tokens)} ", result.out, re.MULTILINE), result.out
    assert re.search(r"Rewording follow-up questions took about \d\d+ tokens more", told)


def test_a_follow_up_may_read_the_whole_document(chat: Chat, server: LoopbackServer) -> None:
    Path("ferry.md").write_text(FERRY + " ".join(f"Plank {number} is of larch." for number in range(400)))

    def reply(request: Request) -> str:
        declines = "Passages from" in request.prompt and "Sundays?" in request.prompt
        return "unanswerable" if declines else answered(request)

    server.answer = reply
    asked = ("--k", "1", "--sections", "600", *model(server), "--json")
    result = chat([QUESTION, FOLLOWED], *asked)
    assert result.code == 0, result.err
    first, second = map(json.loads, result.out.splitlines())
    assert (first["route"], first["alone"], second["alone"]) == ("rag", QUESTION, ALONE)
    assert (second["route"], second["answer"], len(server.book)) == ("long_context", NOBODY, 5)
    assert server.book[-1].request.prompt.count("of larch") == 400
    assert second["citations"][0]["text"] == NOBODY


def test_a_conversation_has_commands(chat: Chat, server: LoopbackServer) -> None:
    server.answer = answered
    lines = ["/route", QUESTION, "/route", "/new", FOLLOWED, "/help", "/bogus", "/quit", "Never asked?"]
    result = chat(lines, *model(server))
    assert (result.code, len(server.book)) == (0, 2), result.err  # nothing to reword after /new
    told = " ".join(result.out.split())
    for text in (
        "Nothing has been answered yet.",
        "Why the retrieved passages answered it",
        "Passages 1 retrieved",
        "The conversation is forgotten.",
        "/quit end the chat",
        "There is no command /bogus.",
    ):
        assert text in told, text
    assert "Never asked" not in told


def test_an_error_ends_the_question_and_not_the_conversation(chat: Chat, server: LoopbackServer) -> None:
    def reply(request: Request) -> str | Reply:
        if "Why" in request.prompt:
            return Reply(status=400, error={"message": "No \x1b[31m such."})
        return answered(request)

    server.answer = reply
    result = chat(["Why?", QUESTION], *model(server))
    assert result.code == 1
    assert AT_SEVEN in result.out
    assert "selfroute: No" in result.err
    assert "\x1b" not in result.err


def test_without_a_model_a_question_is_answered_by_itself(chat: Chat) -> None:
    result = chat([QUESTION, FOLLOWED])
    assert "does not understand follow-up questions" in " ".join(result.out.split())
    assert (result.code, ANSWER in result.out, "Read as" in result.out) == (0, True, False)
    piped = chat([QUESTION], "-")
    assert (piped.code, "holds its questions" in piped.err) == (2, True)


def test_a_history_is_bounded_and_keeps_what_is_latest() -> None:
    turns: list[Turn] = []
    for number in range(40):
        turns = remembering(turns, f"Question {number}?", "word " * 300)
    assert 0.7 * MOST_TOKENS < sum(count_tokens(turn.question + turn.answer) for turn in turns) <= MOST_TOKENS
    assert turns[-1].question == "Question 39?"
    for text in ("word " * 9000, "语" * 9000):
        turns = remembering(turns, "Long?", text)
        assert turns[-1].question == "Long?"
        assert count_tokens(turns[-1].answer) <= MOST_TOKENS


PROGRAM = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell ignores in what it starts with &
os.open(os.ttyname(0), os.O_RDWR)  # now Ctrl-C comes from this terminal
from selfroute_workbench import cli
sys.exit(cli.main(sys.argv[1:]))
"""


class Terminal:
    """A terminal in which the command runs."""

    def __init__(self, *args: str) -> None:
        self._here, there = pty.openpty()
        support = Path(sys.modules["command_parts"].__file__ or "").parent
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(support), *sys.path]), "TERM": "xterm"}
        command = [sys.executable, "-c", PROGRAM, *args]
        self.process = subprocess.Popen(  # noqa: S603
            command, stdin=there, stdout=there, stderr=there, env=env, start_new_session=True
        )
        os.close(there)
        self._poll = select.poll()  # unlike select(), it takes any descriptor
        self._poll.register(self._here, select.POLLIN)
        self._seen = ""

    def write(self, text: str) -> None:
        time.sleep(0.5)  # readline forgets a Ctrl-C that comes while it shows its prompt
        os.write(self._here, text.encode())

    def until(self, text: str) -> str:
        """Return what is shown until a text is."""
        ends = time.monotonic() + 60
        while text not in self._seen:
            assert time.monotonic() < ends, self._seen[-2000:]
            if self._poll.poll(1_000):
                self._seen += os.read(self._here, 4096).decode(errors="replace")
        shown, _, self._seen = self._seen.partition(text)
        return shown

    def close(self) -> int:
        os.close(self._here)
        return self.process.wait(30)


@pytest.fixture
def terminal(run: Run) -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def start(*args: str) -> Terminal:
        opened.append(Terminal(*args))
        return opened[-1]

    yield start
    for one in opened:
        one.process.kill()
        one.close()


def test_in_a_terminal_ctrl_c_stops_an_answer_and_ctrl_d_ends_the_chat(
    terminal: Callable[..., Terminal], server: LoopbackServer
) -> None:
    def reply(request: Request) -> str | Reply:
        return Reply("one two three four five", hold_after=4) if "long story" in request.prompt else answered(request)

    server.answer = reply
    shown = terminal("chat", "ferry.md", *model(server))
    shown.until("/help lists the commands.")
    shown.until("> ")
    shown.write("Tell me a long story\n")
    shown.until("three")
    shown.write("\x03")
    shown.until("(stopped)")
    shown.until("> ")
    shown.write("\x03")
    shown.until("Ctrl-D ends the chat.")
    shown.until("> ")
    shown.write(f"{QUESTION}\n")
    assert "rag" in shown.until(AT_SEVEN)
    shown.until("> ")
    shown.write("\x04")
    assert shown.process.wait(60) == 0
    server.settle()
    stopped, _ = server.book  # what was stopped is not remembered, so that nothing was reworded
    assert (stopped.left, stopped.sent) == (True, 4)
