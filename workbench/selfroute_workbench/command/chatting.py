"""Performs `selfroute chat`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from io import TextIOWrapper

from selfroute.error_text import one_line
from selfroute.errors import ConfigurationError
from selfroute.usage.tokens import count_tokens
from selfroute_workbench.command import answers
from selfroute_workbench.command.asking import open_files, print_json
from selfroute_workbench.command.library import Library
from selfroute_workbench.command.models import Models
from selfroute_workbench.command.options import Chat
from selfroute_workbench.command.sessions import Output, Session, Turn
from selfroute_workbench.command.terminal import open_console
from selfroute_workbench.command.totals import show_ledger
from selfroute_workbench.evaluation.table import printable
from selfroute_workbench.files import STANDARD_INPUT

MOST_TOKENS = 2000
"""How many tokens of the conversation go along with a question, at most."""

_PROMPT = "> "
_HELP = """\
/route  why the last answer took its route, what it cost, and the passages that it was given
/new    forget the conversation
/quit   end the chat; Ctrl-D does so, too
Ctrl-C stops an answer. Whatever else you write is a question; it may follow up on earlier ones."""


def chat(options: Chat) -> bool:
    """Answer questions about the user's own files, in a conversation.

    Returns:
        Whether every question was answered without an error.
    """
    if STANDARD_INPUT in options.files:
        msg = "the standard input of a chat holds its questions: save the document in a file, and name that"
        raise ConfigurationError(msg)
    talk = Talk(*open_files(options), as_json=options.as_json)
    for line in talk.lines():
        if not talk.take(line):
            break
    talk.end()
    return not talk.failed


class Talk:
    """A conversation; `failed` says whether a question ended in an error."""

    def __init__(self, session: Session, library: Library, models: Models, *, as_json: bool) -> None:
        """Begin it, and say what is odd about its model."""
        self.failed = False
        self._session, self._library, self._models, self._as_json = session, library, models, as_json
        self._out, self._err = open_console(sys.stdout), open_console(sys.stderr)
        self._in_terminal = sys.stdin.isatty() and not as_json
        self._turns: list[Turn] = []
        self._last: Output | None = None
        self._answered = self._reworded = 0
        told = self._err if as_json else self._out
        if not models.is_language_model:
            told.print("It does not understand follow-up questions: it answers each question by itself.")
        if self._in_terminal:
            told.print("Ask a question; /help lists the commands.")

    def lines(self) -> Iterator[str]:
        """Yield what the user writes, until its end."""
        if isinstance(sys.stdin, TextIOWrapper):
            sys.stdin.reconfigure(errors="replace")  # a line in another encoding ends neither the chat nor a request
        if not self._in_terminal:
            yield from filter(None, map(str.strip, sys.stdin))
            return
        with suppress(ImportError):
            import readline  # noqa: F401, PLC0415 - editing and recalling lines; Windows has its own
        while True:
            try:
                line = input(_PROMPT).strip()
            except EOFError:
                self._out.print()
                return
            except KeyboardInterrupt:
                self._out.print("\n/quit or Ctrl-D ends the chat.")
                continue
            if line:
                yield line

    def take(self, line: str) -> bool:
        """Follow a command, or answer a question; return whether the conversation goes on."""
        if not line.startswith("/"):
            self._try(line)
        elif line in {"/quit", "/exit"}:
            return False
        elif line == "/new":
            self._turns = []
            self._out.print("The conversation is forgotten.")
        elif line == "/route":
            self._explain()
        else:
            if line != "/help":
                self._out.print(f"There is no command {line.split(maxsplit=1)[0]}.")
            self._out.print(_HELP)
        return True

    def end(self) -> None:
        """Show the totals."""
        if self._answered > 1 and not self._as_json:
            show_ledger(self._out, self._session.ledger, models=self._models)
            if self._reworded:
                self._out.print(f"Rewording follow-up questions took about {self._reworded:,} tokens more.")

    def _try(self, question: str) -> None:
        try:
            self._answer(question)
        except KeyboardInterrupt:
            if not self._in_terminal:
                raise
            self._out.print("(stopped)")
        except Exception as error:  # noqa: BLE001 - whatever the provider's client raises, the chat goes on
            self.failed = True
            self._err.print(f"selfroute: {printable(one_line(error))}", soft_wrap=True)

    def _answer(self, question: str) -> None:
        turns = self._turns if self._models.is_language_model else []
        if not (self._in_terminal or self._as_json):
            answers.show_field(self._out, "Question", question)
        alone, tokens = self._session.reword(question, turns) if turns else (question, 0)
        self._reworded += tokens
        if self._as_json:
            output = self._session.stream(question, _show_nothing, turns=turns, alone=alone)
            print_json({**answers.with_passages_as_json(output, self._library.texts), "alone": alone})
        else:
            output = self._show(question, partial(self._session.stream, question, turns=turns, alone=alone), alone)
        self._last, self._answered = output, self._answered + 1
        if output.answerable:
            self._turns = remembering(self._turns, question, output.answer)

    def _show(self, question: str, stream: answers.Stream, alone: str) -> Output:
        if alone != question:
            answers.show_field(self._out, "Read as", alone)
        output = answers.show_answer(self._out, stream)
        answers.show_sources(self._out, output, texts=self._library.texts)
        answers.show_tokens(self._out, output)
        self._out.print()
        return output

    def _explain(self) -> None:
        if self._last is None:
            self._out.print("Nothing has been answered yet.")
            return
        texts = self._library.texts
        answers.show_reasons(self._out, self._last, models=self._models, texts=texts, with_passages=True)
        self._out.print()


def _show_nothing(_route: str, _piece: str) -> None:
    """Take a piece of an answer that is printed as JSON later."""


def remembering(turns: Sequence[Turn], question: str, answer: str) -> list[Turn]:
    """Add a turn to a conversation, and forget the earliest ones when they are too long together.

    A refusal is better left out: it would teach the model to write more of them.
    """
    turns = [*turns, Turn(_cut(question), _cut(answer))]
    while sum(count_tokens(turn.question) + count_tokens(turn.answer) for turn in turns) > MOST_TOKENS:
        turns = turns[1:]
    return turns


def _cut(text: str) -> str:
    most = MOST_TOKENS // 2
    while (count := count_tokens(text)) > most:
        text = text[: len(text) * most // count]
    return text
