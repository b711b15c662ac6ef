"""What an `Account` notes of a question, whatever happens to it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest

from selfroute.answerability import Verdict
from selfroute.answerability.ending import ANSWERED, NO_PASSAGES, STARTED
from selfroute.effects import Answer, Decided
from selfroute.usage import StepUsage, Usage
from selfroute.usage.account import Account
from selfroute.usage.entry import Entry
from selfroute.usage.prices import PricedModel

DECLINED = Verdict(declined=True, signal="sentinel", evidence="unanswerable")
DOUBT = Verdict(declined=False, signal="doubt", evidence="80 42", prospect=80, confidence=42)
ANSWER = Answer("Ms Okafor.", "rag", True, ANSWERED, (), ())


def ruled(verdict: Verdict, *, go: bool) -> Verdict:
    ruling = {"go": go, "by": "budget", "reason": "what is left"}
    return Verdict(verdict.declined, verdict.signal, verdict.evidence, verdict.prospect, verdict.confidence, ruling)


# What was decided, in turn: the route, whether the draft declined, was doubted and read again, and was stopped.
ENDS: dict[str, tuple[Sequence[Decided], tuple[Any, ...]]] = {
    "nothing decided": ([], (None, None, None, None)),
    "answered": ([Decided("rag", ANSWERED)], ("rag", False, False, False)),
    "nothing found": ([Decided("long_context", NO_PASSAGES)], ("long_context", True, False, False)),
    "started there": ([Decided("long_context", STARTED)], ("long_context", False, False, False)),
    "started, stopped": ([Decided("rag", ruled(STARTED, go=False))], ("rag", False, False, True)),
    "allowed": ([Decided("long_context", ruled(DECLINED, go=True))], ("long_context", True, False, False)),
    "stopped": ([Decided("rag", ruled(DECLINED, go=False))], ("rag", True, False, True)),
    "in doubt": ([Decided("long_context", DOUBT)], ("long_context", False, True, False)),
    "in doubt, sections": ([Decided("sections", ruled(DOUBT, go=True))], ("sections", False, True, False)),
    "in doubt, stopped": ([Decided("rag", ruled(DOUBT, go=False))], ("rag", False, False, True)),
    "sections, on": (
        [Decided("sections", DECLINED), Decided("long_context", DECLINED)],
        ("long_context", True, False, False),
    ),
    "sections, stopped": (
        [Decided("sections", ruled(DOUBT, go=True)), Decided("sections", ruled(DOUBT, go=False))],
        ("sections", False, True, True),
    ),
}


@pytest.mark.parametrize(("decided", "noted"), ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("error", [None, GeneratorExit(), ValueError()], ids=["answered", "left", "failed"])
def test_account_notes_the_last_decision(
    decided: Sequence[Decided], noted: tuple[Any, ...], error: BaseException | None
) -> None:
    entries = list[Entry]()
    account = Account(entries.append)
    for one in decided:
        account.decided(one)
    account.close(None if error else ANSWER, error)
    (entry,) = entries
    assert (entry.route, entry.declined, entry.doubted, entry.stopped) == noted
    assert entry.as_dict().items() >= {"doubted": noted[2], "stopped": noted[3]}.items()


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("error", [None, GeneratorExit(), ValueError()], ids=["answered", "left", "failed"])
def test_account_calls_back_once_however_a_question_ends(
    caplog: pytest.LogCaptureFixture, error: BaseException | None, *, recorded: bool
) -> None:
    told = list[Any]()

    def fail(_: Usage) -> None:
        raise LookupError

    account = Account(told.append if recorded else None)
    account.on_close(fail)
    account.on_close(told.append)
    with pytest.raises(type(error)) if error else caplog.at_level(logging.ERROR), account:
        account.add_call("sections", StepUsage(100, 5), PricedModel("one"))
        if error:
            raise error
        account.close(ANSWER)
    assert [type(one) for one in told] == ([Usage, Entry] if recorded else [Usage])
    assert told[0].sections.input_tokens == 100
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [LookupError]
