"""SelfRouteQueryEngine over real wires: the OpenAILike and GoogleGenAI packages against servers on loopback."""

from __future__ import annotations

import asyncio
import gc
import re
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

import aiohttp
import anyio
import httpx
import openai
import pytest
from google.genai import errors as google
from llama_index.core import QueryBundle, Settings
from llama_index.core.bridge.pydantic import Field
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.llms import LLM
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import Document, NodeWithScore, TextNode
from llama_index.llms.google_genai import GoogleGenAI
from llama_index.llms.openai import OpenAIResponses
from llama_index.llms.openai_like import OpenAILike

import loopback
from llamaindex_selfroute import SelfRouteQueryEngine
from loopback import A_MINUTE, Entry, LoopbackServer, Reply, Request
from selfroute.errors import NoReplyError, SelfRouteError
from selfroute.flow import MOST_RETRIES
from selfroute.policies import Never

Json = dict[str, Any]
Build = Callable[..., SelfRouteQueryEngine]  # is told whether to stream
Ask = Callable[[Build], "Told"]
Show = Callable[[str], None]
TooLong = Callable[[int, int], Reply]

QUESTION = "Who chaired the meeting?"
ANSWER = "Ms Okafor chaired it, as in May."
PASSAGES = [
    NodeWithScore(node=TextNode(id_="opening", text="The meeting began at nine."), score=0.9),
    NodeWithScore(node=TextNode(id_="end", text="It ended at noon."), score=0.8),
]
WHOLE = Document(id_="minutes", text="The meeting began at nine. Ms Okafor chaired it. It ended at noon.")
KEY = "sk-loop-5f1c9e7a2b4d"
REFUSAL = "unanswerable"
RAMBLING = REFUSAL + " because the passages tell of other meetings and of other years" * 20
IN_WORDS = "The passages do not mention who chaired the meeting."
GOING_ON = "Revenue was 14 million in May" + " and more in June" * 60
KEYS = {"route", "answerable", "finish_reason", "decision", "usage", "retrieved"}
DROPPED = (openai.APIConnectionError, httpx.TransportError, aiohttp.ClientError)
SLOW = 0.02  # seconds between two pieces
# The last ones that go with core 0.12.
OLD_OPENAI = version("llama-index-llms-openai").startswith("0.4.")
OLD_GEMINI = version("llama-index-llms-google-genai").startswith("0.2.")
LEISURELY = Reply(text=ANSWER, delay=2 * SLOW)  # so that a draft is not stopped by the end of the event loop
KNOWN = {"draft": "gpt-4o-mini", "final": "gpt-4o"}  # LlamaIndex's model of OpenAI's responses takes no other names
MOST_AFTER = 5  # pieces after the last one that was needed; then the server waits for the client to leave


class Passages(BaseRetriever):
    """Finds the same passages for every question."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        assert query_bundle.query_str
        return PASSAGES


@dataclass
class Told:
    """What a reader has in the end."""

    text: str
    sources: Sequence[NodeWithScore]
    metadata: Json

    @property
    def usage(self) -> Json:
        """The token counts of both steps."""
        usage: Json = self.metadata["usage"]
        return usage


pytestmark = pytest.mark.usefixtures("one_certificate")


@pytest.fixture(scope="module", autouse=True)
def frozen(one_certificate: None) -> None:
    """Keep what the clients import out of the collections after each test: they take long otherwise."""
    with LoopbackServer(lambda _: ANSWER) as started:
        for client in ("openai", "gemini"):
            model(started, client, "first").complete(QUESTION)
    gc.collect()
    gc.freeze()


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(lambda _: ANSWER) as started:
        yield started
    gc.collect()


def model(server: LoopbackServer, client: str, name: str, **options: Any) -> LLM:
    """Make a model; one for each event loop, since the clients keep connections of the loop they ran in."""
    if client == "gemini":
        # Without these two the constructor asks the server for them.
        options = {"max_tokens": 256, "context_window": 1_000_000, **options}
        address = {"base_url": server.gemini_url}
        return GoogleGenAI(model=name, api_key=KEY, http_options=address, max_retries=0, **options)  # type: ignore[arg-type]
    options = {"additional_kwargs": {"stream_options": {"include_usage": True}}, **options}
    if client == "responses":
        name = KNOWN[name]
        return OpenAIResponses(model=name, api_base=server.openai_url, api_key=KEY, max_retries=0)
    chats = client == "openai"
    return OpenAILike(
        model=name, api_base=server.openai_url, api_key=KEY, is_chat_model=chats, max_retries=0, **options
    )


def over(server: LoopbackServer, client: str, *, whole: Document = WHOLE, **options: Any) -> Build:
    """Engines over a server, which tells the two steps by the model's name, `draft` or `final`."""

    def build(*, streaming: bool) -> SelfRouteQueryEngine:
        return SelfRouteQueryEngine(
            Passages(),
            documents=[whole],
            llm=model(server, client, "draft", **options),
            long_context_llm=model(server, client, "final", **options),
            streaming=streaming,
        )

    return build


def script(server: LoopbackServer, *, draft: Reply | str, final: Reply | str = ANSWER) -> None:
    server.answer = lambda request: draft if request.model in {"draft", KNOWN["draft"]} else final


def entries(server: LoopbackServer, name: str) -> list[Entry]:
    server.settle()
    return [entry for entry in server.book if entry.request.model == name]


def models_asked(server: LoopbackServer) -> list[str]:
    server.settle()
    return [entry.request.model for entry in server.book]


def asked_up_to(step: str) -> list[str]:
    return ["draft"] if step == "draft" else ["draft", "final"]


def counts(entry: Entry) -> Json:
    return {
        "input_tokens": entry.input_tokens,
        "output_tokens": entry.output_tokens,
        "cached_tokens": entry.cached_tokens,
    }


def query(build: Build) -> Told:
    response: Any = build(streaming=False).query(QUESTION)
    return Told(response.response, response.source_nodes, response.metadata)


def aquery(build: Build) -> Told:
    async def ask() -> Any:
        return await build(streaming=False).aquery(QUESTION)

    response = asyncio.run(ask())
    return Told(response.response, response.source_nodes, response.metadata)


def stream(build: Build) -> Told:
    pieces: list[str] = []
    response = show(build, pieces.append)
    return Told("".join(pieces), response.source_nodes, response.metadata)


def astream(build: Build) -> Told:
    pieces: list[str] = []
    response = ashow(build, pieces.append)
    return Told("".join(pieces), response.source_nodes, response.metadata)


def show(build: Build, show_piece: Show) -> Any:
    response: Any = build(streaming=True).query(QUESTION)
    for piece in response.response_gen:
        show_piece(piece)
    return response


def ashow(build: Build, show_piece: Show) -> Any:
    async def read() -> Any:
        response: Any = await build(streaming=True).aquery(QUESTION)
        async for piece in response.async_response_gen():
            show_piece(piece)
        return response

    return asyncio.run(read())


both_clients = pytest.mark.parametrize("client", ["openai", "gemini"])
every_client = pytest.mark.parametrize("client", ["openai", "completions", "gemini"])
openai_alike = pytest.mark.parametrize("client", ["openai", "completions"])
every_mode = pytest.mark.parametrize("ask", [query, stream, aquery, astream])
both_modes = pytest.mark.parametrize("ask", [query, astream])
streaming = pytest.mark.parametrize("ask", [stream, astream])
each_step = pytest.mark.parametrize("step", ["draft", "final"])

SCENARIOS = [  # draft and final reply; route, answer, answerable and signal
    pytest.param((ANSWER, ""), ("rag", ANSWER, True, "answered"), id="answered"),
    pytest.param((REFUSAL, ANSWER), ("long_context", ANSWER, True, "sentinel"), id="declined"),
    pytest.param((IN_WORDS, ANSWER), ("long_context", ANSWER, True, "phrase"), id="declined in its own words"),
    pytest.param((REFUSAL, REFUSAL), ("long_context", REFUSAL, False, "sentinel"), id="declined twice"),
    pytest.param(("", ANSWER), ("long_context", ANSWER, True, "empty"), id="empty draft"),
    pytest.param((REFUSAL, ""), ("long_context", REFUSAL, False, "sentinel"), id="empty final reply"),
]


@every_client
@every_mode
@pytest.mark.parametrize(("replies", "expected"), SCENARIOS)
def test_every_mode_takes_the_same_route(
    server: LoopbackServer, client: str, ask: Ask, replies: tuple[str, str], expected: tuple[str, str, bool, str]
) -> None:
    script(server, draft=replies[0], final=replies[1])
    told = ask(over(server, client))
    facts, route = told.metadata, told.metadata["route"]
    assert set(facts) == KEYS
    assert (route, told.text, facts["answerable"], facts["decision"]["signal"]) == expected
    assert facts["decision"]["declined"] == (route == "long_context")
    assert facts["retrieved"] == ["opening", "end"]
    assert [source.node.node_id for source in told.sources] == (["opening", "end"] if route == "rag" else ["minutes"])
    assert models_asked(server) == (["draft"] if route == "rag" else ["draft", "final"])


CUT = {"openai": "length", "completions": "length", "responses": "max_output_tokens", "gemini": "MAX_TOKENS"}
FILTERED = {"gemini": "SAFETY"}  # the others: content_filter
every_protocol = pytest.mark.parametrize("client", CUT)


@every_protocol
@every_mode
def test_how_an_answer_ended_is_said_in_the_provider_s_word(server: LoopbackServer, client: str, ask: Ask) -> None:
    by_itself = {"responses": "completed", "gemini": "STOP"}.get(client, "stop")
    loses = client == "gemini" and ask in {query, aquery}  # the package raises, and does not tell the text
    for finish, said in ((None, by_itself), (CUT[client], CUT[client]))[: 1 if loses else 2]:
        script(server, draft=Reply("On 4 May it was 12 at", finish=finish))
        told = ask(over(server, client))
        assert (told.text, told.metadata["finish_reason"]) == ("On 4 May it was 12 at", said)


@every_protocol
@streaming
def test_a_draft_that_is_cut_in_the_refusal_is_a_decline(server: LoopbackServer, client: str, ask: Ask) -> None:
    script(server, draft=Reply("una", finish=CUT[client]), final=Reply("Unanswerable. It covers 2024 only."))
    told = ask(over(server, client))
    assert (told.text, told.metadata["answerable"]) == ("It covers 2024 only.", False)
    decision = told.metadata["decision"]
    assert (decision["signal"], decision["evidence"]) == ("sentinel", "una")


def no_replies(client: str) -> Iterator[tuple[Reply, str, str]]:
    filtered = FILTERED.get(client, "content_filter")
    yield Reply("", finish=CUT[client], thinking_tokens=9), CUT[client], ""
    yield Reply("", finish=filtered), filtered, ""
    if client != "completions":
        call = {"openai": "tool_calls", "responses": "completed", "gemini": "STOP"}[client]
        yield Reply("{}", call="search"), call, ""
        if client != "gemini":
            yield Reply(refusal="I cannot help."), {"openai": "stop"}.get(client, call), "I cannot help."


@every_protocol
@every_mode
@each_step
def test_no_reply_is_no_verdict(server: LoopbackServer, client: str, ask: Ask, step: str) -> None:
    for reply, finish_reason, refusal in no_replies(client):
        if OLD_OPENAI and client == "responses" and reply.call and "stream" in ask.__name__:
            continue  # that package passes on nothing of it
        script(server, **{"draft": REFUSAL, step: reply})  # type: ignore[arg-type]
        asked = len(server.book)
        with pytest.raises(NoReplyError) as raised:
            ask(over(server, client))
        assert (raised.value.finish_reason, raised.value.refusal) == (finish_reason, refusal)
        assert raised.value.step == ("rag" if step == "draft" else "long_context")
        assert len(server.book) - asked == (1 if step == "draft" else 2)


@streaming
@pytest.mark.skipif(OLD_GEMINI, reason="a chunk without text is an AttributeError in that package")
def test_a_gemini_stream_without_any_piece_is_no_verdict(server: LoopbackServer, ask: Ask) -> None:
    script(server, draft=Reply("", finish="SAFETY", bare_end=True))  # LlamaIndex drops a chunk without content
    with pytest.raises(NoReplyError, match="broke it off"):
        ask(over(server, "gemini"))


@every_client
@streaming
@pytest.mark.parametrize("pieces", [["un", "ans", "", "werable"], list(REFUSAL), ["", " ", REFUSAL]])
def test_a_refusal_in_pieces_is_a_refusal(server: LoopbackServer, client: str, ask: Ask, pieces: list[str]) -> None:
    script(server, draft=Reply(pieces=pieces))
    told = ask(over(server, client))
    assert (told.metadata["route"], told.text) == ("long_context", ANSWER)
    assert not told.usage["estimated"]


@every_mode
def test_null_content_is_an_empty_reply(server: LoopbackServer, ask: Ask) -> None:
    script(server, draft=Reply(text="a b", content_null=True), final=Reply(text="a b", content_null=True))
    told = ask(over(server, "openai"))
    facts = told.metadata
    assert (facts["route"], facts["answerable"], told.text) == ("long_context", False, REFUSAL)
    assert facts["decision"]["signal"] == "empty"
    assert models_asked(server) == ["draft", "final"]


@every_client
@every_mode
def test_usage_of_an_answered_draft_is_the_servers(server: LoopbackServer, client: str, ask: Ask) -> None:
    script(server, draft=Reply(text=ANSWER, cached_tokens=5))
    usage = ask(over(server, client)).usage
    (draft,) = entries(server, "draft")
    assert (usage["rag"], usage["long_context"]) == (counts(draft), None)
    assert usage["total_tokens"] == draft.input_tokens + draft.output_tokens
    assert usage["estimated"] is False
    assert draft.cached_tokens == 5


@every_client
@every_mode
def test_usage_of_both_steps_is_the_servers_thoughts_included(server: LoopbackServer, client: str, ask: Ask) -> None:
    script(
        server,
        draft=Reply(text=REFUSAL, cached_tokens=4, thinking_tokens=21),
        final=Reply(text=ANSWER, cached_tokens=9, thinking_tokens=34),
    )
    usage = ask(over(server, client)).usage
    (draft,), (final,) = entries(server, "draft"), entries(server, "final")
    assert (usage["rag"], usage["long_context"]) == (counts(draft), counts(final))
    assert usage["total_tokens"] == sum(entry.input_tokens + entry.output_tokens for entry in (draft, final))
    assert usage["estimated"] is False
    assert draft.output_tokens > 21


@every_client
@every_mode
def test_usage_is_marked_as_estimated_where_the_server_reports_none(
    server: LoopbackServer, client: str, ask: Ask
) -> None:
    script(server, draft=Reply(text=REFUSAL, usage=False), final=Reply(text=ANSWER, usage=False))
    usage = ask(over(server, client)).usage
    assert usage["estimated"] is True
    for step in ("rag", "long_context"):
        assert usage[step]["input_tokens"] > 0
        assert usage[step]["output_tokens"] > 0


@openai_alike
@every_mode
def test_an_openai_stream_whose_usage_was_not_asked_for_is_estimated_and_each_engine_logs_what_to_do(
    server: LoopbackServer, client: str, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        usage = ask(over(server, client, additional_kwargs={})).usage
    draft = entries(server, "draft")[-1]
    told = [record.message for record in caplog.records if record.name == "llamaindex_selfroute.models"]
    assert ["include_usage" in message for message in told] == [True] * 2 * draft.request.stream, "once for each engine"
    assert usage["estimated"] is draft.request.stream
    assert usage["rag"]["input_tokens"] > 0
    assert (usage["rag"] == counts(draft)) is not draft.request.stream


@streaming
@pytest.mark.skipif(OLD_GEMINI, reason="a chunk without text is an AttributeError in that package")
def test_what_gemini_counted_up_to_a_chunk_that_llama_index_drops_is_no_last_word(
    server: LoopbackServer, ask: Ask
) -> None:
    script(server, draft=Reply(text=ANSWER, bare_end=True, cached_tokens=3))
    told = ask(over(server, "gemini"))
    (draft,) = entries(server, "draft")
    assert told.text == ANSWER
    assert told.usage["estimated"] is True
    assert told.usage["rag"]["input_tokens"] == draft.input_tokens
    assert told.usage["rag"]["output_tokens"] >= draft.output_tokens
    assert told.usage["rag"]["cached_tokens"] == 3


def failing(client: str, status: int) -> Reply:
    table = {
        ("gemini", 429): loopback.GEMINI_RATE_LIMITED,
        ("gemini", 500): loopback.GEMINI_SERVER_ERROR,
        ("openai", 429): loopback.RATE_LIMITED,
        ("openai", 500): loopback.SERVER_ERROR,
    }
    return table.get((client, status), Reply(status=status))


RAISED = {
    ("gemini", 401): google.ClientError,
    ("gemini", 429): google.ClientError,
    ("gemini", 500): google.ServerError,
    ("openai", 401): openai.AuthenticationError,
    ("openai", 429): openai.RateLimitError,
    ("openai", 500): openai.InternalServerError,
}


@cache
def bare_error(client: str, status: int) -> str:
    """Return what the bare model says when it meets such an error."""
    with LoopbackServer(lambda _: failing(client, status)) as other, pytest.raises(RAISED[client, status]) as caught:
        model(other, client, "final").complete(QUESTION)
    return str(caught.value)


@both_clients
@both_modes
@each_step
@pytest.mark.parametrize("status", [401, 429, 500])
def test_a_providers_error_passes_through_and_is_never_paid_twice(
    server: LoopbackServer, client: str, ask: Ask, step: str, status: int
) -> None:
    reply = failing(client, status)
    script(server, draft=reply if step == "draft" else REFUSAL, final=reply)
    with pytest.raises(RAISED[client, status]) as caught:
        ask(over(server, client))
    assert str(caught.value) == bare_error(client, status)
    assert models_asked(server) == asked_up_to(step)
    assert KEY not in "".join(traceback.format_exception(caught.value))


@both_clients
@each_step
def test_a_sync_stream_raises_at_the_call_and_an_async_one_at_its_first_text(
    server: LoopbackServer, client: str, step: str
) -> None:
    reply = failing(client, 500)
    script(server, draft=reply if step == "draft" else REFUSAL, final=reply)
    with pytest.raises((openai.InternalServerError, google.ServerError)):
        over(server, client)(streaming=True).query(QUESTION)

    async def read() -> None:
        asked = len(server.book)
        response: Any = await over(server, client)(streaming=True).aquery(QUESTION)
        assert len(server.book) == asked
        with pytest.raises((openai.InternalServerError, google.ServerError)):
            await anext(response.response_gen)
        assert response.metadata["retrieved"] == ["opening", "end"]
        assert response.source_nodes == []

    asyncio.run(read())
    assert models_asked(server) == asked_up_to(step) * 2


DROPS = [(client, ask) for client in ("openai", "completions", "gemini") for ask in (query, stream, aquery, astream)]
DROPS.remove(("gemini", aquery))  # google-genai itself asks again, after as much as ten seconds


@each_step
@pytest.mark.parametrize(("client", "ask"), DROPS)
def test_a_connection_dropped_before_any_text_passes_through(
    server: LoopbackServer, client: str, ask: Ask, step: str
) -> None:
    gone = Reply(text=ANSWER, drop_after=0)
    script(server, draft=gone if step == "draft" else REFUSAL, final=gone)
    with pytest.raises(DROPPED) as caught:
        ask(over(server, client))
    assert not isinstance(caught.value, SelfRouteError)
    assert models_asked(server) == asked_up_to(step)


@openai_alike
@every_mode
def test_a_server_that_is_not_there_is_the_providers_error(server: LoopbackServer, client: str, ask: Ask) -> None:
    build = over(server, client)
    server.stop()
    with pytest.raises(openai.APIConnectionError):
        ask(build)


@every_client
@each_step
@pytest.mark.parametrize("read", [show, ashow])
@pytest.mark.parametrize("ending", [{"drop_after": 4}, {"error_after": 4}], ids=["dropped", "an error event"])
def test_a_stream_that_breaks_off_ends_in_the_providers_error(
    server: LoopbackServer, client: str, step: str, read: Callable[[Build, Show], Any], ending: Json
) -> None:
    broken = Reply(text=ANSWER, delay=0.01, **ending)
    script(server, draft=broken if step == "draft" else REFUSAL, final=broken)
    pieces: list[str] = []
    with pytest.raises(DROPPED if "drop_after" in ending else (openai.APIError, google.ServerError)):
        read(over(server, client), pieces.append)
    shown = "".join(pieces)
    assert ANSWER.startswith(shown)
    assert len(shown) < len(ANSWER)
    assert models_asked(server) == asked_up_to(step)


LONG = Document(
    id_="minutes",
    text=" ".join(f"Word {number} of the long minutes." if number % 7 else "A comma, a dot." for number in range(1500))
    + " The meeting began at nine. Ms Okafor chaired it. It ended at noon. "
    + " ".join(f"Item {number} was put off." for number in range(1500)),
)
LIMIT = 2000  # words of a prompt: the unit that the server counts in
TOO_LONG = [
    pytest.param("openai", loopback.too_long_typed, id="OpenAI, typed"),
    pytest.param("openai", loopback.too_long_in_words, id="vLLM, in words"),
    pytest.param("completions", loopback.too_long_in_words, id="vLLM, completions"),
    pytest.param("gemini", loopback.gemini_too_long, id="Gemini"),
]


def narrow(server: LoopbackServer, too_long: TooLong) -> None:
    """Give the final model a window of so many words."""

    def answer(request: Request) -> Reply | str:
        if request.model == "draft":
            return REFUSAL
        asked = len(request.prompt.split())
        return too_long(LIMIT, asked) if asked > LIMIT else ANSWER

    server.answer = answer


@every_mode
@pytest.mark.parametrize(("client", "too_long"), TOO_LONG)
def test_a_context_too_long_is_tried_once_more_with_less(
    server: LoopbackServer, client: str, too_long: TooLong, ask: Ask
) -> None:
    narrow(server, too_long)
    told = ask(over(server, client, whole=LONG))
    assert (told.metadata["route"], told.text) == ("long_context", ANSWER)
    first, second = entries(server, "final")
    assert (first.status, second.status) == (400, 200)
    assert LIMIT // 4 < len(second.request.prompt.split()) <= LIMIT
    (read,) = told.sources
    text = read.node.get_content()
    assert read.node.metadata["selfroute"]["trimmed"] is True
    assert text in LONG.text
    assert text in second.request.prompt
    assert PASSAGES[0].node.get_content() in text
    assert told.usage["long_context"] == counts(second)
    assert told.usage["estimated"] is False
    assert "selfroute" not in LONG.metadata


@every_mode
@pytest.mark.parametrize(("client", "too_long"), TOO_LONG)
def test_a_context_still_too_long_is_the_providers_error(
    server: LoopbackServer, client: str, too_long: TooLong, ask: Ask
) -> None:
    script(server, draft=REFUSAL, final=too_long(LIMIT, len(LONG.text.split())))
    with pytest.raises((openai.BadRequestError, google.ClientError), match=str(LIMIT)):
        ask(over(server, client, whole=LONG))
    assert models_asked(server) == ["draft", *["final"] * (1 + MOST_RETRIES)]


@every_mode
@pytest.mark.parametrize(("client", "too_long"), TOO_LONG)
def test_a_draft_that_stays_too_long_is_the_providers_error(
    server: LoopbackServer, client: str, too_long: TooLong, ask: Ask
) -> None:
    script(server, draft=too_long(LIMIT, LIMIT + 1))
    with pytest.raises((openai.BadRequestError, google.ClientError), match=str(LIMIT)):
        ask(over(server, client))
    assert len(models_asked(server)) > 1
    assert set(models_asked(server)) == {"draft"}


@every_mode
@pytest.mark.parametrize(("client", "too_long"), TOO_LONG)
def test_an_error_of_the_second_try_passes_through(
    server: LoopbackServer, client: str, too_long: TooLong, ask: Ask
) -> None:
    limited = loopback.GEMINI_RATE_LIMITED if client == "gemini" else loopback.RATE_LIMITED
    replies: Iterator[Reply | str] = iter([REFUSAL, too_long(LIMIT, len(LONG.text.split())), limited])
    server.answer = lambda _: next(replies)
    with pytest.raises((openai.RateLimitError, google.ClientError), match="429"):
        ask(over(server, client, whole=LONG))
    assert models_asked(server) == ["draft", "final", "final"]


CHATTY = [
    pytest.param(RAMBLING, 1, id="the refusal and more"),
    pytest.param(IN_WORDS + " They tell of other meetings." * 40, len(IN_WORDS.split()), id="in its own words"),
]


@every_client
@streaming
@pytest.mark.parametrize(("text", "needed"), CHATTY)
def test_a_rambling_decline_is_hung_up_on(
    server: LoopbackServer, client: str, ask: Ask, text: str, needed: int
) -> None:
    script(server, draft=Reply(text=text, delay=SLOW, hold_after=needed + MOST_AFTER), final=LEISURELY)
    told = ask(over(server, client))
    assert (told.metadata["route"], told.text) == ("long_context", ANSWER)
    usage = told.usage
    (final,) = entries(server, "final")
    (draft,) = entries(server, "draft")
    assert usage["estimated"] is True
    assert usage["long_context"] == counts(final)
    assert usage["rag"]["output_tokens"] > 0
    if client == "gemini":  # whose chunks all carry what was counted so far
        assert usage["rag"]["input_tokens"] == draft.input_tokens
    else:
        assert usage["rag"]["input_tokens"] > 0
    assert draft.left


NUMBERS = ["80", " 42", "\n", "Mr Lin took the chair"]


def graded(build: Build, **fields: Any) -> Build:
    """The same engines, which ask for two numbers first."""

    def build_graded(*, streaming: bool) -> SelfRouteQueryEngine:
        engine = build(streaming=streaming)
        for name, value in {"answerability": "graded", **fields}.items():
            setattr(engine._response_synthesizer, name, value)
        return engine

    return build_graded


@both_clients
@streaming
def test_a_doubted_draft_is_hung_up_on_after_its_numbers(server: LoopbackServer, client: str, ask: Ask) -> None:
    pieces, needed = [*NUMBERS, *GOING_ON.split(" ")], NUMBERS.index("\n") + 1
    script(server, draft=Reply(pieces=pieces, delay=SLOW, hold_after=needed + MOST_AFTER), final=LEISURELY)
    told = ask(graded(over(server, client)))
    assert (told.metadata["route"], told.text) == ("long_context", ANSWER)
    assert told.metadata["decision"]["signal"] == "doubt"
    (draft,), (final,) = entries(server, "draft"), entries(server, "final")
    assert draft.left
    assert (told.usage["estimated"], told.usage["long_context"]) == (True, counts(final))
    assert 0 < told.usage["rag"]["output_tokens"] <= 10
    assert told.usage["rag"]["input_tokens"] > 0


@both_clients
@streaming
def test_a_doubted_draft_that_is_kept_is_read_on_with_not_a_character_lost(
    server: LoopbackServer, client: str, ask: Ask
) -> None:
    script(server, draft=Reply(pieces=[*NUMBERS, GOING_ON, "."], delay=SLOW))
    told = ask(graded(over(server, client), escalation=Never()))
    assert (told.metadata["route"], told.text) == ("rag", f"{NUMBERS[-1]}{GOING_ON}.")
    (draft,) = entries(server, "draft")
    assert (draft.done, draft.left, models_asked(server)) == (True, False, ["draft"])
    assert told.usage["rag"]["output_tokens"] > 0
    assert told.metadata["finish_reason"] is not None


class Keeper(BaseEventHandler):
    """Keeps every event, and with it the frames of every exception."""

    kept: list[BaseEvent] = Field(default_factory=list)

    def handle(self, event: BaseEvent, **_: Any) -> None:
        self.kept.append(event)


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    handlers = get_dispatcher().event_handlers
    handlers.append(keeper := Keeper())
    yield keeper
    handlers.remove(keeper)


@every_client
def test_a_handler_that_keeps_all_events_does_not_keep_the_model_going(
    server: LoopbackServer, client: str, keeper: Keeper
) -> None:
    script(server, draft=Reply(text=RAMBLING, delay=SLOW, hold_after=1 + MOST_AFTER), final=LEISURELY)
    assert astream(over(server, client)).text == ANSWER
    (draft,) = entries(server, "draft")
    assert draft.left
    assert any(isinstance(event, ExceptionEvent) for event in keeper.kept)


@every_client
@streaming
def test_what_the_last_step_says_after_the_refusal_is_shown(server: LoopbackServer, client: str, ask: Ask) -> None:
    script(server, draft=REFUSAL, final=RAMBLING)
    told = ask(over(server, client))
    assert (told.metadata["answerable"], told.text) == (False, RAMBLING.removeprefix(REFUSAL).strip())
    assert told.usage["estimated"] is False
    assert told.usage["long_context"] == counts(entries(server, "final")[0])


@every_client
@streaming
@pytest.mark.parametrize("pieces", [[REFUSAL], ["un", "answer", "able", "."], [REFUSAL, ".", "\n"]])
def test_a_clean_decline_ends_by_itself_and_keeps_its_usage(
    server: LoopbackServer, client: str, ask: Ask, pieces: list[str]
) -> None:
    script(server, draft=Reply(pieces=pieces, delay=SLOW, cached_tokens=2))
    usage = ask(over(server, client)).usage
    (draft,) = entries(server, "draft")
    assert draft.done
    assert not draft.left
    assert usage["rag"] == counts(draft)
    assert usage["estimated"] is False


Leave = Callable[[Any, int, Callable[[], None]], Awaitable[Any]]  # returns what the reader keeps


async def _read(pieces: AsyncGenerator[str, None], many: int) -> None:
    for _ in range(many):
        await anext(pieces)


async def close_response_gen(response: Any, many: int, leaving: Callable[[], None]) -> Any:
    await _read(response.response_gen, many)
    leaving()
    await response.response_gen.aclose()
    return response


async def close_async_response_gen(response: Any, many: int, leaving: Callable[[], None]) -> Any:
    async with aclosing(response.async_response_gen()) as pieces:
        await _read(pieces, many)
        leaving()
    return response


async def break_off(response: Any, many: int, leaving: Callable[[], None]) -> Any:
    async for _ in response.async_response_gen():
        many -= 1
        if not many:
            leaving()
            break
    return response


async def cancel_the_reader(response: Any, many: int, leaving: Callable[[], None]) -> Any:
    enough = asyncio.Event()

    async def read_on() -> None:
        async for _ in response.async_response_gen():
            nonlocal many
            many -= 1
            if not many:
                enough.set()

    task = asyncio.create_task(read_on())
    await enough.wait()
    leaving()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return response


async def drop_the_response(response: Any, many: int, leaving: Callable[[], None]) -> Any:
    await _read(response.response_gen, many)
    leaving()


LEAVE = [close_response_gen, close_async_response_gen, break_off, cancel_the_reader, drop_the_response]


@every_client
@each_step
@pytest.mark.parametrize("leave", LEAVE)
def test_a_reader_who_leaves_stops_the_model_and_may_come_back(
    server: LoopbackServer, client: str, step: str, leave: Leave, caplog: pytest.LogCaptureFixture
) -> None:
    slow = Reply(text=GOING_ON, delay=SLOW)
    script(server, draft=slow if step == "draft" else REFUSAL, final=slow)
    sent: list[int] = []

    async def read() -> Told:
        engine = over(server, client)(streaming=True)
        kept = await leave(await engine.aquery(QUESTION), 5, lambda: sent.append(server.book[-1].sent))
        await asyncio.sleep(0)  # the loop makes a task of closing a stream that was dropped
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()}, return_exceptions=True)
        await asyncio.to_thread(server.settle)
        assert kept is None or kept.metadata["usage"]["estimated"] is True
        script(server, draft=ANSWER)
        again: Any = await engine.aquery(QUESTION)
        return Told("".join([piece async for piece in again.response_gen]), again.source_nodes, again.metadata)

    told = asyncio.run(read())
    assert (told.metadata["route"], told.text, told.usage["estimated"]) == ("rag", ANSWER, False)
    entry = entries(server, step)[0]
    assert entry.left
    assert entry.sent <= sent[0] + MOST_AFTER
    assert models_asked(server) == [*asked_up_to(step), "draft"]
    assert caplog.records == []


@both_clients
def test_a_response_that_nobody_reads_asks_nothing(
    server: LoopbackServer, client: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def ask() -> None:
        await over(server, client)(streaming=True).aquery(QUESTION)

    asyncio.run(ask())
    server.settle()
    assert server.book == []
    assert caplog.records == []


@pytest.mark.parametrize("streaming", [False, True])
@each_step
@every_client
def test_a_caller_who_leaves_before_there_is_any_reply_stops_the_model(
    server: LoopbackServer, client: str, step: str, *, streaming: bool
) -> None:
    reading = Reply(ANSWER, first_delay=A_MINUTE)
    script(server, draft=reading if step == "draft" else REFUSAL, final=reading)

    async def ask() -> None:
        response: Any = await over(server, client)(streaming=streaming).aquery(QUESTION)
        async for _ in response.async_response_gen():
            pass

    async def leave() -> None:
        async with anyio.create_task_group() as requests:  # FastAPI drops a request like this
            requests.start_soon(ask)
            while step not in {entry.request.model for entry in server.book}:  # noqa: ASYNC110  the server is in another thread
                await asyncio.sleep(0.01)
            requests.cancel_scope.cancel()
        await asyncio.to_thread(server.settle)

    asyncio.run(leave())
    assert [entry.left for entry in entries(server, step)] == [True]


@every_client
@each_step
def test_a_cancelled_aquery_stops_the_model_and_may_be_asked_again(
    server: LoopbackServer, client: str, step: str
) -> None:
    slow = Reply(text=GOING_ON, delay=SLOW)
    script(server, draft=slow if step == "draft" else REFUSAL, final=slow)

    async def read() -> tuple[int, Any]:
        engine = over(server, client)(streaming=False)
        task = asyncio.create_task(engine.aquery(QUESTION))
        while not server.book or server.book[-1].request.model != step or server.book[-1].sent < 3:  # noqa: ASYNC110  the server is in another thread
            await asyncio.sleep(0.005)
        seen = server.book[-1].sent
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(server.settle)
        script(server, draft=ANSWER)
        return seen, await engine.aquery(QUESTION)

    seen, again = asyncio.run(read())
    assert again.response == ANSWER
    entry = entries(server, step)[0]
    assert entry.left
    assert entry.sent <= seen + MOST_AFTER


@every_client
def test_a_sync_reader_who_leaves_stops_the_model_however_old_the_stream_is(
    server: LoopbackServer, client: str
) -> None:
    script(server, draft=Reply(text=GOING_ON, delay=SLOW))
    engine = over(server, client)(streaming=True)
    response: Any = engine.query(QUESTION)
    read = [next(response.response_gen) for _ in range(5)]
    gc.collect()
    gc.freeze()
    sent = server.book[-1].sent
    response.response_gen.close()
    script(server, draft=ANSWER)
    again: Any = engine.query(QUESTION)
    assert "".join(again.response_gen) == ANSWER
    assert GOING_ON.startswith("".join(read))
    assert response.metadata["usage"]["estimated"] is True
    (left, _) = entries(server, "draft")
    assert left.left
    assert left.sent <= sent + MOST_AFTER


@both_clients
@pytest.mark.parametrize("text", ["Ms Okafor chaired it and", "The chair was Ms Okafor from", "S4: unanswerable, and"])
def test_an_answer_flows_while_the_model_writes(server: LoopbackServer, client: str, text: str) -> None:
    script(server, draft=Reply(text=text + " so on" * 40, delay=SLOW))

    async def read() -> int:
        response: Any = await over(server, client)(streaming=True).aquery(QUESTION)
        await anext(response.response_gen)
        sent = server.book[-1].sent
        await response.response_gen.aclose()
        return sent

    assert asyncio.run(read()) <= len(text.split()) + MOST_AFTER


@every_client
@pytest.mark.parametrize("streamed", [True, False])
def test_twenty_questions_at_once_are_kept_apart(server: LoopbackServer, client: str, *, streamed: bool) -> None:
    def answer(request: Request) -> Reply:
        number = int(re.findall(r"item (\d+)", request.prompt)[-1])
        declines = request.model == "draft" and number % 2
        return Reply(text=REFUSAL if declines else f"Item {number} was put off.", delay=0.01, cached_tokens=number)

    async def ask(engine: SelfRouteQueryEngine, number: int) -> Told:
        response: Any = await engine.aquery(f"What became of item {number}?")
        text = "".join([piece async for piece in response.response_gen]) if streamed else response.response
        return Told(text, response.source_nodes, response.metadata)

    async def ask_all() -> list[Told]:
        engine = over(server, client)(streaming=streamed)
        return await asyncio.gather(*(ask(engine, number) for number in range(20)))

    server.answer = answer
    answers = asyncio.run(ask_all())
    for number, told in enumerate(answers):
        assert told.text == f"Item {number} was put off."
        assert told.metadata["route"] == ("long_context" if number % 2 else "rag")
        assert told.usage["estimated"] is False
        step = "long_context" if number % 2 else "rag"
        assert told.usage[step]["cached_tokens"] == number
    server.settle()
    assert len(server.book) == 30
    paid = sum(entry.input_tokens + entry.output_tokens for entry in server.book)
    assert sum(told.usage["total_tokens"] for told in answers) == paid


@both_clients
@pytest.mark.parametrize("ask", [query, stream])
def test_the_sync_modes_run_in_a_thread_beside_an_event_loop(server: LoopbackServer, client: str, ask: Ask) -> None:
    script(server, draft=REFUSAL)

    async def aside() -> Told:
        return await asyncio.to_thread(ask, over(server, client))

    told = asyncio.run(aside())
    assert (told.metadata["route"], told.text, told.usage["estimated"]) == ("long_context", ANSWER, False)


@pytest.mark.skipif(OLD_GEMINI, reason="that package always asks")
def test_gemini_is_asked_for_its_window_only_if_it_was_not_told(server: LoopbackServer) -> None:
    query(over(server, "gemini"))
    assert server.calls == ["POST /v1beta/models/draft:generateContent"]
    server.calls.clear()
    told = query(over(server, "gemini", context_window=None))
    assert told.text == ANSWER
    assert server.calls == [
        "GET /v1beta/models/draft",
        "GET /v1beta/models/final",
        "POST /v1beta/models/draft:generateContent",
    ]


@both_clients
@pytest.mark.parametrize("ask", [query, astream])
def test_a_window_that_the_model_tells_of_bounds_the_documents(server: LoopbackServer, client: str, ask: Ask) -> None:
    script(server, draft=REFUSAL)
    told = ask(over(server, client, whole=LONG, context_window=4000))
    (final,) = entries(server, "final")
    assert told.text == ANSWER
    assert told.sources[0].node.metadata["selfroute"]["trimmed"] is True
    assert len(final.request.prompt) < 4000 * 4 < len(LONG.text)


@every_client
@pytest.mark.parametrize("ask", [query, astream])
def test_a_system_prompt_goes_with_both_steps(server: LoopbackServer, client: str, ask: Ask) -> None:
    script(server, draft=REFUSAL)
    ask(over(server, client, system_prompt="Answer in French."))
    assert models_asked(server) == ["draft", "final"]
    assert all("Answer in French." in entry.request.prompt for entry in server.book)


def test_settings_stay_as_they_were(server: LoopbackServer) -> None:
    script(server, draft=REFUSAL)
    assert Settings.callback_manager  # is made when it is first asked for
    before = dict(vars(Settings))
    for ask in (query, stream, aquery, astream):
        ask(over(server, "openai"))
    assert vars(Settings) == before
