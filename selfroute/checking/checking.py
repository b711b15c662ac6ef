"""Try a question, sync or async, and return the findings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from selfroute.calls.call import Call
from selfroute.calls.host import check_question
from selfroute.checking.findings import Finding, Findings, Remark, Subject
from selfroute.checking.on_documents import OnDocuments
from selfroute.checking.on_models import OnModels
from selfroute.checking.words import message_of, plainly
from selfroute.effects import Retrieve

Document = TypeVar("Document")


class Checking(OnDocuments[Document], OnModels[Document]):
    """Tries the parts of a pipeline on one question."""

    def findings(self) -> Findings:
        """Return the findings, in the order of the subjects."""
        looks: Mapping[Subject, Callable[[], Remark]] = {
            "source": self.look_at_sources,
            "wall": self.look_at_wall,
            "document": self.look_at_document,
            "window": self.look_at_window,
            "prices": self.look_at_prices,
            "prompt": self.look_at_prompts,
        }
        return Findings(_finding(subject, look) for subject, look in looks.items())


def check(call: Call[Any]) -> Findings:
    """Try the parts of a pipeline on a question and return the findings; no model is asked."""
    check_question(call.host.question)
    call.warm_up()
    checking = Checking(call)
    for what, effect in checking.attempts():
        try:
            call.retrieve(effect) if isinstance(effect, Retrieve) else call.read_documents(effect)
        except Exception as error:  # noqa: BLE001, PERF203 - it is a finding
            checking.failed(what, error)
    return checking.findings()


async def acheck(call: Call[Any]) -> Findings:
    """The async twin of `check`."""
    check_question(call.host.question)
    await asyncio.to_thread(call.warm_up)
    checking = Checking(call)
    for what, effect in checking.attempts():
        try:
            await (call.aretrieve(effect) if isinstance(effect, Retrieve) else call.aread_documents(effect))
        except Exception as error:  # noqa: BLE001, PERF203
            checking.failed(what, error)
    return await asyncio.to_thread(checking.findings)  # counting a long text may block the event loop


def _finding(subject: Subject, look: Callable[[], Remark]) -> Finding:
    """Return the finding about one subject; an error of the user's own parts, such as a retriever, is one, too."""
    try:
        ok, message, advice = look()
    except Exception as error:  # noqa: BLE001
        ok, message, advice = False, message_of(error), ""
    return Finding(subject, ok, plainly(message), plainly(advice))
