"""How a reply ended, over the wires of both hosts: in the provider's word; and where there was none, no verdict."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version

import pytest

from hosts_parts import STREAMS, cases
from hosts_wires import PROTOCOLS, broken, over, script, steps, up_to, wheres
from loopback import LoopbackServer, Reply
from selfroute.errors import NoReplyError

pytestmark = pytest.mark.usefixtures("frozen")

everywhere = wheres(PROTOCOLS)
# The last one that goes with llama-index-core 0.12.
OLD_OPENAI = version("llama-index-llms-openai").startswith("0.4.")
BY_ITSELF = {"openai": "stop", "completions": "stop", "responses": "completed", "gemini": "STOP"}
CUT = {"openai": "length", "completions": "length", "responses": "max_output_tokens", "gemini": "MAX_TOKENS"}
FILTERED = {"gemini": "SAFETY"}  # the others: content_filter


def raises_when_cut(where: str) -> bool:
    """Whether the package raises and does not tell the text."""
    return where in {"llamaindex gemini whole", "llamaindex gemini awhole"}


@everywhere
def test_how_an_answer_ended_is_said_in_the_provider_s_word(server: LoopbackServer, where: str) -> None:
    protocol = where.split()[1]
    endings = [(None, BY_ITSELF[protocol])] + [(CUT[protocol], CUT[protocol])] * (not raises_when_cut(where))
    for finish, said in endings:
        script(server, draft=Reply("On 4 May it was 12 at", finish=finish))
        told = over(where, server).now()
        assert (told.answer, told.finish_reason) == ("On 4 May it was 12 at", said)


@pytest.mark.parametrize("where", [case for case in cases(PROTOCOLS) if not raises_when_cut(str(case.values[0]))])
def test_a_draft_that_is_cut_in_the_refusal_is_a_decline(server: LoopbackServer, where: str) -> None:
    script(server, draft=Reply("una", finish=CUT[where.split()[1]]), final="Unanswerable. It covers 2024 only.")
    told = over(where, server).now()
    assert told.verdict == ("long_context", "It covers 2024 only.", False, "sentinel")
    assert told.decision["evidence"] == "una"


def no_replies(where: str) -> Iterator[tuple[Reply, str, str]]:
    """Yield replies that say nothing, with how they ended and what the model said by itself."""
    host, protocol, mode = where.split()
    yield Reply("", finish=CUT[protocol], thinking_tokens=9), CUT[protocol], ""
    filtered = FILTERED.get(protocol, "content_filter")
    yield Reply("", finish=filtered), filtered, ""
    if protocol == "completions":
        return
    call = "tool_calls" if protocol == "openai" else BY_ITSELF[protocol]
    if not (OLD_OPENAI and where == f"llamaindex responses {mode}" and mode in STREAMS):  # it passes on nothing of it
        yield Reply("{}", call="search"), call, ""
    dropped = host == "langchain" and protocol == "openai" and mode in STREAMS  # by ChatOpenAI
    if protocol != "gemini" and not dropped:
        refused = "The input is too long."  # and yet this is no error that less to read would help against
        yield Reply(refusal=refused), BY_ITSELF[protocol], refused


@everywhere
@pytest.mark.parametrize("step", ["draft", "final"])
def test_no_reply_is_no_verdict(server: LoopbackServer, where: str, step: str) -> None:
    for reply, finish_reason, refusal in no_replies(where):
        broken(server, step, reply)
        server.book.clear()
        with pytest.raises(NoReplyError) as raised:
            over(where, server).now()
        assert (raised.value.finish_reason, raised.value.refusal) == (finish_reason, refusal)
        assert raised.value.step == ("rag" if step == "draft" else "long_context")
        assert steps(server) == up_to(step)
