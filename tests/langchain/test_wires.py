"""SelfRouteChain over real wires: langchain-openai and langchain-google-genai against servers on loopback."""

from __future__ import annotations

import asyncio
import gc
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, closing, suppress
from functools import reduce
from operator import add
from typing import Any

import aiohttp
import anyio
import httpx
import openai
import pytest
from google import genai
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI

import loopback
from langchain_selfroute import SelfRouteChain
from loopback import A_MINUTE, Entry, LoopbackServer, Reply, Request
from selfroute.errors import NoReplyError, SelfRouteError
from selfroute.flow import MOST_RETRIES
from selfroute.policies import Never

Json = dict[str, Any]
Ask = Callable[..., Any]
Leave = Callable[[SelfRouteChain, int, Callable[[], None]], None]

QUESTION = "Who chaired the meeting?"
ANSWER = "Ms Okafor chaired it, as in May."
PASSAGES = [
    Document("The meeting began at nine.", metadata={"source": "minutes"}),
    Document("It ended at noon.", metadata={"source": "minutes"}),
]
WHOLE = Document("The meeting began at nine. Ms Okafor chaired it. It ended at noon.", metadata={"source": "minutes"})
KEY = "sk-loop-5f1c9e7a2b4d"
REFUSAL = "unanswerable"
RAMBLING = REFUSAL + " because the passages tell of other meetings and of other years" * 20
KEYS = {"input", "retrieved", "context", "answer", "route", "answerable", "finish_reason", "decision", "usage"}
DROPPED = (openai.APIConnectionError, httpx.TransportError, aiohttp.ClientError)
SLOW = 0.04  # seconds between two pieces
LEISURELY = Reply(text=ANSWER, delay=2 * SLOW)  # so that a draft is not stopped by the end of the event loop
MOST_AFTER = 3  # pieces after the last one that was needed; then the server waits for the client to leave


class Passages(BaseRetriever):
    """Finds the same passages for every question."""

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        assert query
        assert run_manager
        return PASSAGES


class Runs(BaseTracer):
    """Keeps every finished run."""

    def __init__(self) -> None:
        super().__init__()
        self.roots: list[Run] = []

    def _persist_run(self, run: Run) -> None:
        self.roots.append(run)

    def text(self) -> str:
        """Return all that the runs recorded."""
        return "\n".join(map(_everything, self.roots))


def _everything(run: Run) -> str:
    own = {key: value for key, value in vars(run).items() if key not in {"child_runs", "parent_run"}}
    return "\n".join([repr(own), *map(_everything, run.child_runs)])


pytestmark = pytest.mark.usefixtures("one_certificate", "frozen")


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(lambda _: ANSWER) as started:
        yield started
    gc.collect()


def chat_model(server: LoopbackServer, client: str, name: str, **options: Any) -> BaseChatModel:
    if client != "gemini":
        options = {"stream_usage": True, "use_responses_api": client == "responses", **options}
        return ChatOpenAI(base_url=server.openai_url, api_key=KEY, model=name, max_retries=0, **options)
    return ChatGoogleGenerativeAI(base_url=server.gemini_url, google_api_key=KEY, model=name, max_retries=1, **options)


def chain_over(server: LoopbackServer, client: str, *, whole: Document = WHOLE, **options: Any) -> SelfRouteChain:
    """Make a chain; the server tells its two steps by the model's name, `draft` or `final`."""
    llm = chat_model(server, client, "draft", **options)
    name = "model" if client == "gemini" else "model_name"
    final = llm.model_copy(update={name: "final"})  # shares the client, which takes long to make
    return SelfRouteChain(retriever=Passages(), llm=llm, long_context_llm=final, documents=[whole])


def script(server: LoopbackServer, *, draft: Reply | str, final: Reply | str = ANSWER) -> None:
    server.answer = lambda request: draft if request.model == "draft" else final


def entries(server: LoopbackServer) -> dict[str, list[Entry]]:
    server.settle()
    models = [entry.request.model for entry in server.book]
    return {name: [entry for entry in server.book if entry.request.model == name] for name in models}


def models_asked(server: LoopbackServer) -> list[str]:
    server.settle()
    return [entry.request.model for entry in server.book]


def counts(entry: Entry) -> Json:
    return {
        "input_tokens": entry.input_tokens,
        "output_tokens": entry.output_tokens,
        "cached_tokens": entry.cached_tokens,
    }


def invoke(runnable: Runnable[Any, Any], **config: Any) -> Any:
    return runnable.invoke(QUESTION, config)


def ainvoke(runnable: Runnable[Any, Any], **config: Any) -> Any:
    return asyncio.run(runnable.ainvoke(QUESTION, config))


def stream(runnable: Runnable[Any, Any], **config: Any) -> Any:
    return reduce(add, list(runnable.stream(QUESTION, config)))


def astream(runnable: Runnable[Any, Any], **config: Any) -> Any:
    async def read() -> list[Any]:
        return [chunk async for chunk in runnable.astream(QUESTION, config)]

    return reduce(add, asyncio.run(read()))


both_clients = pytest.mark.parametrize("client", ["openai", "gemini"])
every_mode = pytest.mark.parametrize("ask", [invoke, stream, ainvoke, astream])
both_modes = pytest.mark.parametrize("ask", [invoke, astream])
streaming = pytest.mark.parametrize("ask", [stream, astream])
each_step = pytest.mark.parametrize("step", ["draft", "final"])

IN_WORDS = "The passages do not mention who chaired the meeting."
SCENARIOS = [  # draft and final reply; route, answer, answerable and signal
    pytest.param((ANSWER, ""), ("rag", ANSWER, True, "answered"), id="answered"),
    pytest.param((REFUSAL, ANSWER), ("long_context", ANSWER, True, "sentinel"), id="declined"),
    pytest.param(("Unanswerable.", ANSWER), ("long_context", ANSWER, True, "sentinel"), id="declined with a dot"),
    pytest.param((IN_WORDS, ANSWER), ("long_context", ANSWER, True, "phrase"), id="declined in its own words"),
    pytest.param((REFUSAL, REFUSAL), ("long_context", REFUSAL, False, "sentinel"), id="declined twice"),
    pytest.param(("", ANSWER), ("long_context", ANSWER, True, "empty"), id="empty draft"),
    pytest.param((REFUSAL, ""), ("long_context", REFUSAL, False, "sentinel"), id="empty final reply"),
    pytest.param(("un", ""), ("rag", "un", True, "answered"), id="a prefix of the refusal"),
]


@both_clients
@every_mode
@pytest.mark.parametrize(("replies", "expected"), SCENARIOS)
def test_every_mode_takes_the_same_route(
    server: LoopbackServer, client: str, ask: Ask, replies: tuple[str, str], expected: tuple[str, str, bool, str]
) -> None:
    script(server, draft=replies[0], final=replies[1])
    output = ask(chain_over(server, client))
    route = output["route"]
    assert set(output) == KEYS
    assert (route, output["answer"], output["answerable"], output["decision"]["signal"]) == expected
    assert output["decision"]["declined"] == (route == "long_context")
    assert output["retrieved"] == PASSAGES
    assert output["context"] == (PASSAGES if route == "rag" else [WHOLE])
    assert models_asked(server) == (["draft"] if route == "rag" else ["draft", "final"])


CUT = {"openai": "length", "responses": "max_output_tokens", "gemini": "MAX_TOKENS"}
FILTERED = {"openai": "content_filter", "responses": "content_filter", "gemini": "SAFETY"}
every_protocol = pytest.mark.parametrize("client", CUT)


@every_protocol
@every_mode
def test_how_an_answer_ended_is_said_in_the_provider_s_word(server: LoopbackServer, client: str, ask: Ask) -> None:
    by_itself = {"openai": "stop", "responses": "completed", "gemini": "STOP"}[client]
    for finish, said in ((None, by_itself), (CUT[client], CUT[client])):
        script(server, draft=Reply("On 4 May it was 12 at", finish=finish))
        output = ask(chain_over(server, client))
        assert (output["answer"], output["finish_reason"]) == ("On 4 May it was 12 at", said)


@every_protocol
@every_mode
def test_a_draft_that_is_cut_in_the_refusal_is_a_decline(server: LoopbackServer, client: str, ask: Ask) -> None:
    script(server, draft=Reply("una", finish=CUT[client]), final=Reply("Unanswerable. It covers 2024 only."))
    output = ask(chain_over(server, client))
    assert (output["answer"], output["answerable"]) == ("It covers 2024 only.", False)
    assert (output["decision"]["signal"], output["decision"]["evidence"]) == ("sentinel", "una")


def no_replies(client: str, *, streams: bool) -> Iterator[tuple[Reply, str, str]]:
    yield Reply("", finish=CUT[client], thinking_tokens=9), CUT[client], ""
    yield Reply("", finish=FILTERED[client]), FILTERED[client], ""
    call = {"openai": "tool_calls", "responses": "completed", "gemini": "STOP"}[client]
    yield Reply("{}", call="search"), call, ""
    told = client == "responses" or (client == "openai" and not streams)  # ChatOpenAI drops it from chat streams
    if told:
        yield Reply(refusal="I cannot help."), {"openai": "stop"}.get(client, call), "I cannot help."


@every_protocol
@every_mode
@each_step
def test_no_reply_is_no_verdict(server: LoopbackServer, client: str, ask: Ask, step: str) -> None:
    for reply, finish_reason, refusal in no_replies(client, streams=ask in {stream, astream}):
        script(server, **{"draft": REFUSAL, step: reply})  # type: ignore[arg-type]
        asked = len(server.book)
        with pytest.raises(NoReplyError) as raised:
            ask(chain_over(server, client))
        assert (raised.value.finish_reason, raised.value.refusal) == (finish_reason, refusal)
        assert raised.value.step == ("rag" if step == "draft" else "long_context")
        assert len(server.book) - asked == (1 if step == "draft" else 2)


@both_modes
def test_the_host_s_retries_and_fallbacks_see_that_there_was_no_reply(server: LoopbackServer, ask: Ask) -> None:
    replies = iter([Reply("", finish="content_filter"), Reply(ANSWER)])
    server.answer = lambda _: next(replies)
    if ask is invoke:  # the host does not ask again for a stream
        assert ask(chain_over(server, "openai").with_retry(wait_exponential_jitter=False))["answer"] == ANSWER
    with LoopbackServer(lambda _: Reply("", finish="content_filter")) as filtering:
        script(server, draft=ANSWER)
        chain = chain_over(filtering, "openai").with_fallbacks([chain_over(server, "openai")])
        assert ask(chain)["answer"] == ANSWER


@both_clients
@streaming
@pytest.mark.parametrize("pieces", [["un", "ans", "", "werable"], list(REFUSAL), [REFUSAL, "."], ["", " ", REFUSAL]])
def test_a_refusal_in_pieces_is_a_refusal(server: LoopbackServer, client: str, ask: Ask, pieces: list[str]) -> None:
    script(server, draft=Reply(pieces=pieces))
    output = ask(chain_over(server, client))
    assert (output["route"], output["answer"]) == ("long_context", ANSWER)
    assert not output["usage"]["estimated"]


@every_mode
def test_null_content_is_an_empty_reply(server: LoopbackServer, ask: Ask) -> None:
    script(server, draft=Reply(text="a b", content_null=True), final=Reply(text="a b", content_null=True))
    output = ask(chain_over(server, "openai"))
    assert (output["route"], output["answerable"], output["answer"]) == ("long_context", False, REFUSAL)
    assert output["decision"]["signal"] == "empty"
    assert models_asked(server) == ["draft", "final"]


@both_clients
@every_mode
def test_usage_of_an_answered_draft_is_the_servers(server: LoopbackServer, client: str, ask: Ask) -> None:
    script(server, draft=Reply(text=ANSWER, cached_tokens=5))
    usage = ask(chain_over(server, client))["usage"]
    (draft,) = entries(server)["draft"]
    assert (usage["rag"], usage["long_context"]) == (counts(draft), None)
    assert usage["total_tokens"] == draft.input_tokens + draft.output_tokens
    assert usage["estimated"] is False
    assert draft.cached_tokens == 5


@both_clients
@every_mode
def test_usage_of_both_steps_is_the_servers(server: LoopbackServer, client: str, ask: Ask) -> None:
    script(server, draft=Reply(text=REFUSAL, cached_tokens=4), final=Reply(text=ANSWER, cached_tokens=9))
    usage = ask(chain_over(server, client))["usage"]
    book = entries(server)
    (draft,), (final,) = book["draft"], book["final"]
    assert (usage["rag"], usage["long_context"]) == (counts(draft), counts(final))
    assert usage["total_tokens"] == sum(entry.input_tokens + entry.output_tokens for entry in (draft, final))
    assert usage["estimated"] is False


@both_clients
@every_mode
def test_usage_is_marked_as_estimated_where_the_server_reports_none(
    server: LoopbackServer, client: str, ask: Ask
) -> None:
    script(server, draft=Reply(text=REFUSAL, usage=False), final=Reply(text=ANSWER, usage=False))
    usage = ask(chain_over(server, client))["usage"]
    assert usage["estimated"] is True
    for step in ("rag", "long_context"):
        assert usage[step]["input_tokens"] > 0
        assert usage[step]["output_tokens"] > 0


@streaming
@pytest.mark.parametrize("said", [False, None])
def test_usage_is_marked_as_estimated_where_none_is_streamed_and_each_chain_logs_what_to_do_once(
    server: LoopbackServer, ask: Ask, said: bool | None, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = (chain_over(server, "openai", stream_usage=said) for _ in range(2))
    for chain in (first, first, second):
        usage = ask(chain)["usage"]
        assert usage["estimated"] is True
        assert usage["rag"]["input_tokens"] > 0
    for record in caplog.records:
        assert (record.levelname, record.name) == ("WARNING", "langchain_selfroute.models")
        assert "ChatOpenAI(stream_usage=True)" in record.message
    assert len(caplog.records) == 2, "once for each chain"


@streaming
def test_nothing_is_logged_where_usage_is_reported(
    server: LoopbackServer, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    assert ask(chain_over(server, "openai"))["usage"]["estimated"] is False
    assert not caplog.records


def failing(client: str, status: int) -> Reply:
    table = {
        ("openai", 429): loopback.RATE_LIMITED,
        ("openai", 500): loopback.SERVER_ERROR,
        ("gemini", 429): loopback.GEMINI_RATE_LIMITED,
        ("gemini", 500): loopback.GEMINI_SERVER_ERROR,
    }
    return table[client, status]


def bare_error(client: str, ask: Ask, *, reply: Reply, name: str = "final") -> BaseException:
    """Return what the bare model raises when it meets the same reply."""
    with LoopbackServer(lambda _: reply) as other, pytest.raises(Exception) as caught:  # noqa: PT011
        ask(chat_model(other, client, name))
    return caught.value


def asked_up_to(step: str) -> list[str]:
    return ["draft"] if step == "draft" else ["draft", "final"]


@both_clients
@both_modes
@each_step
@pytest.mark.parametrize("status", [429, 500])
def test_a_providers_error_passes_through_and_is_never_paid_twice(
    server: LoopbackServer, client: str, ask: Ask, step: str, status: int
) -> None:
    reply = failing(client, status)
    script(server, draft=reply if step == "draft" else REFUSAL, final=reply)
    expected = bare_error(client, ask, reply=reply, name=step)
    with pytest.raises(type(expected)) as caught:
        ask(chain_over(server, client))
    assert type(caught.value) is type(expected)
    assert str(caught.value) == str(expected)
    assert models_asked(server) == asked_up_to(step)


def skip_if_asked_again(client: str, ask: Ask) -> None:
    """Skip where the client itself asks again after a drop, up to ten seconds later."""
    if client == "gemini" and ask in (ainvoke, astream) and genai.__version__.startswith("1."):
        pytest.skip("google-genai 1 asks again itself, some seconds after a drop")


@both_clients
@every_mode
@each_step
def test_a_connection_dropped_before_any_text_passes_through(
    server: LoopbackServer, client: str, ask: Ask, step: str
) -> None:
    skip_if_asked_again(client, ask)
    gone = Reply(text=ANSWER, drop_after=0)
    script(server, draft=gone if step == "draft" else REFUSAL, final=gone)
    with pytest.raises(DROPPED) as caught:
        ask(chain_over(server, client))
    assert not isinstance(caught.value, SelfRouteError)
    assert models_asked(server) == asked_up_to(step)


@both_clients
@every_mode
def test_a_server_that_is_not_there_is_the_providers_error(server: LoopbackServer, client: str, ask: Ask) -> None:
    skip_if_asked_again(client, ask)
    chain = chain_over(server, client)
    server.stop()
    with pytest.raises(DROPPED) as caught:
        ask(chain)
    assert not isinstance(caught.value, SelfRouteError)


def show_sync(chain: SelfRouteChain, show: Callable[[str], None]) -> None:
    for chunk in chain.stream(QUESTION):
        show(chunk.get("answer", ""))


def show_async(chain: SelfRouteChain, show: Callable[[str], None]) -> None:
    async def read() -> None:
        async for chunk in chain.astream(QUESTION):
            show(chunk.get("answer", ""))

    asyncio.run(read())


@both_clients
@each_step
@pytest.mark.parametrize("read", [show_sync, show_async])
@pytest.mark.parametrize("ending", [{"drop_after": 4}, {"error_after": 4}], ids=["dropped", "an error event"])
def test_a_stream_that_breaks_off_ends_in_the_providers_error(
    server: LoopbackServer, client: str, step: str, read: Callable[..., None], ending: Json
) -> None:
    broken = Reply(text=ANSWER, delay=0.01, **ending)
    script(server, draft=broken if step == "draft" else REFUSAL, final=broken)
    pieces: list[str] = []
    with pytest.raises(Exception) as caught:  # noqa: PT011
        read(chain_over(server, client), pieces.append)
    shown = "".join(pieces)
    assert ANSWER.startswith(shown)
    assert len(shown) < len(ANSWER)
    assert not isinstance(caught.value, SelfRouteError)
    if "drop_after" in ending:
        assert isinstance(caught.value, DROPPED)
    assert models_asked(server) == asked_up_to(step)


LONG = Document(
    " ".join(f"Word {number} of the long minutes." if number % 7 else "A comma, a dot." for number in range(1500))
    + " The meeting began at nine. Ms Okafor chaired it. It ended at noon. "
    + " ".join(f"Item {number} was put off." for number in range(1500)),
    metadata={"source": "minutes"},
)
LIMIT = 2000  # words of a prompt: the unit that the server counts in
TOO_LONG = [
    pytest.param("openai", loopback.too_long_typed, id="OpenAI, typed"),
    pytest.param("openai", loopback.too_long_in_words, id="vLLM, in words"),
    pytest.param("gemini", loopback.gemini_too_long, id="Gemini"),
]


def narrow(server: LoopbackServer, too_long: Callable[[int, int], Reply]) -> None:
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
    server: LoopbackServer, client: str, too_long: Callable[[int, int], Reply], ask: Ask
) -> None:
    narrow(server, too_long)
    output = ask(chain_over(server, client, whole=LONG))
    assert (output["route"], output["answer"]) == ("long_context", ANSWER)
    first, second = entries(server)["final"]
    assert (first.status, second.status) == (400, 200)
    assert LIMIT // 4 < len(second.request.prompt.split()) <= LIMIT
    (read,) = output["context"]
    assert read.metadata["selfroute"]["trimmed"] is True
    assert read.page_content in LONG.page_content
    assert read.page_content in second.request.prompt
    assert PASSAGES[0].page_content in read.page_content
    assert output["usage"]["long_context"] == counts(second)
    assert output["usage"]["estimated"] is False
    assert "selfroute" not in LONG.metadata


@every_mode
@pytest.mark.parametrize(("client", "too_long"), TOO_LONG)
def test_a_context_still_too_long_is_the_providers_error(
    server: LoopbackServer, client: str, too_long: Callable[[int, int], Reply], ask: Ask
) -> None:
    reply = too_long(LIMIT, len(LONG.page_content.split()))
    script(server, draft=REFUSAL, final=reply)
    expected = bare_error(client, ask, reply=reply)
    with pytest.raises(type(expected), match=str(LIMIT)) as caught:
        ask(chain_over(server, client, whole=LONG))
    assert str(caught.value) == str(expected)
    assert models_asked(server) == ["draft", *["final"] * (1 + MOST_RETRIES)]


@pytest.mark.parametrize("share", [2, 3, 5])
@pytest.mark.parametrize(("client", "too_long"), TOO_LONG)
def test_a_provider_that_counts_more_tokens_than_we_do_is_tried_once_more_too(
    server: LoopbackServer, client: str, too_long: Callable[[int, int], Reply], share: int
) -> None:
    """A text in Chinese, say: a token is one character there, not four."""

    def answer(request: Request) -> Reply | str:
        if request.model == "draft":
            return REFUSAL
        asked = len(request.prompt)
        return too_long(limit, asked) if asked > limit else ANSWER

    server.answer = answer
    limit = len(LONG.page_content) * share // 6
    output = invoke(chain_over(server, client, whole=LONG))
    first, second = entries(server)["final"]
    assert output["answer"] == ANSWER
    assert limit // 4 < len(second.request.prompt) <= limit < len(first.request.prompt)


@every_mode
@pytest.mark.parametrize(("client", "too_long"), TOO_LONG)
def test_a_draft_that_stays_too_long_is_the_providers_error(
    server: LoopbackServer, client: str, too_long: Callable[[], Reply], ask: Ask
) -> None:
    script(server, draft=too_long())
    expected = bare_error(client, ask, reply=too_long(), name="draft")
    with pytest.raises(type(expected)) as caught:
        ask(chain_over(server, client))
    assert str(caught.value) == str(expected)
    assert len(models_asked(server)) > 1
    assert set(models_asked(server)) == {"draft"}


@both_clients
@every_mode
@pytest.mark.parametrize("status", [429, 500])
def test_an_error_of_the_second_try_passes_through(server: LoopbackServer, client: str, ask: Ask, status: int) -> None:
    too_long = loopback.too_long_typed if client == "openai" else loopback.gemini_too_long
    replies = iter([REFUSAL, too_long(LIMIT, len(LONG.page_content.split())), failing(client, status)])
    server.answer = lambda _: next(replies)
    expected = bare_error(client, ask, reply=failing(client, status))
    with pytest.raises(type(expected)) as caught:
        ask(chain_over(server, client, whole=LONG))
    assert str(caught.value) == str(expected)
    assert models_asked(server) == ["draft", "final", "final"]


@both_clients
@streaming
def test_a_rambling_decline_is_hung_up_on(server: LoopbackServer, client: str, ask: Ask) -> None:
    script(server, draft=Reply(text=RAMBLING, delay=SLOW, hold_after=1 + MOST_AFTER), final=LEISURELY)
    output = ask(chain_over(server, client))
    assert (output["route"], output["answer"]) == ("long_context", ANSWER)
    book = entries(server)
    (draft,), (final,) = book["draft"], book["final"]
    assert draft.left
    usage = output["usage"]
    assert usage["estimated"] is True
    assert usage["long_context"] == counts(final)
    assert usage["rag"]["output_tokens"] > 0
    if client == "gemini":  # whose chunks all carry what was counted so far
        assert usage["rag"]["input_tokens"] == draft.input_tokens
    else:
        assert usage["rag"]["input_tokens"] > 0


@both_clients
@streaming
def test_a_rambling_decline_in_its_own_words_is_hung_up_on(server: LoopbackServer, client: str, ask: Ask) -> None:
    text, needed = IN_WORDS + " They tell of other meetings." * 40, len(IN_WORDS.split())
    script(server, draft=Reply(text=text, delay=SLOW, hold_after=needed + MOST_AFTER), final=LEISURELY)
    output = ask(chain_over(server, client))
    assert (output["decision"]["signal"], output["answer"]) == ("phrase", ANSWER)
    (draft,) = entries(server)["draft"]
    assert draft.left


NUMBERS = ["80", " 42", "\n", "Mr", " Lin took the chair"]
GOING_ON = "".join(f" and again on day {day}" for day in range(60))


@both_clients
@streaming
def test_a_doubted_draft_is_hung_up_on_after_its_numbers(server: LoopbackServer, client: str, ask: Ask) -> None:
    pieces = [*NUMBERS, *GOING_ON.split(" ")]
    needed = NUMBERS.index("Mr") + 1
    script(server, draft=Reply(pieces=pieces, delay=SLOW, hold_after=needed + MOST_AFTER), final=LEISURELY)
    output = ask(chain_over(server, client).model_copy(update={"answerability": "graded"}))
    assert (output["route"], output["answer"], output["decision"]["signal"]) == ("long_context", ANSWER, "doubt")
    (draft,), (final,) = entries(server)["draft"], entries(server)["final"]
    assert draft.left
    assert (output["usage"]["estimated"], output["usage"]["long_context"]) == (True, counts(final))
    assert 0 < output["usage"]["rag"]["output_tokens"] <= 6
    assert output["usage"]["rag"]["input_tokens"] > 0


@both_clients
@streaming
def test_a_doubted_draft_that_is_kept_is_read_on_with_not_a_character_lost(
    server: LoopbackServer, client: str, ask: Ask
) -> None:
    script(server, draft=Reply(pieces=[*NUMBERS, GOING_ON, "."], delay=SLOW))
    kept = {"answerability": "graded", "escalation": Never()}
    output = ask(chain_over(server, client).model_copy(update=kept))
    assert (output["route"], output["answer"]) == ("rag", f"Mr Lin took the chair{GOING_ON}.")
    (draft,) = entries(server)["draft"]
    assert (draft.done, draft.left, models_asked(server)) == (True, False, ["draft"])
    assert (output["usage"]["estimated"], output["usage"]["rag"]) == (False, counts(draft))
    assert output["finish_reason"] is not None


@both_clients
@streaming
def test_what_the_last_step_says_after_the_refusal_is_shown(server: LoopbackServer, client: str, ask: Ask) -> None:
    script(server, draft=REFUSAL, final=RAMBLING)
    output = ask(chain_over(server, client))
    assert (output["answerable"], output["answer"]) == (False, RAMBLING.removeprefix(REFUSAL).strip())
    assert output["usage"]["estimated"] is False
    assert output["usage"]["long_context"] == counts(entries(server)["final"][0])


@both_clients
@streaming
@pytest.mark.parametrize("pieces", [[REFUSAL], ["un", "answer", "able", "."], [REFUSAL, ".", "\n"]])
def test_a_clean_decline_ends_by_itself_and_keeps_its_usage(
    server: LoopbackServer, client: str, ask: Ask, pieces: list[str]
) -> None:
    script(server, draft=Reply(pieces=pieces, delay=SLOW, cached_tokens=2))
    usage = ask(chain_over(server, client))["usage"]
    (draft,) = entries(server)["draft"]
    assert draft.done
    assert not draft.left
    assert usage["rag"] == counts(draft)
    assert usage["estimated"] is False


def close_sync(chain: SelfRouteChain, pieces: int, leaving: Callable[[], None]) -> None:
    with closing(chain.stream(QUESTION)) as chunks:  # type: ignore[type-var]
        texts = (chunk for chunk in chunks if chunk.get("answer"))
        for _ in range(pieces):
            next(texts)
        leaving()


async def _read(chunks: AsyncIterator[Any], pieces: int) -> None:
    seen = 0
    async for chunk in chunks:
        seen += bool(chunk.get("answer"))
        if seen == pieces:
            return


def close_async(chain: SelfRouteChain, pieces: int, leaving: Callable[[], None]) -> None:
    async def leave() -> None:
        async with aclosing(chain.astream(QUESTION)) as chunks:  # type: ignore[type-var]
            await _read(chunks, pieces)
            leaving()

    asyncio.run(leave())


def cancel_task(chain: SelfRouteChain, pieces: int, leaving: Callable[[], None]) -> None:
    async def leave() -> None:
        enough = asyncio.Event()

        async def read_on() -> None:
            async with aclosing(chain.astream(QUESTION)) as chunks:  # type: ignore[type-var]
                await _read(chunks, pieces)
                enough.set()
                await _read(chunks, 10_000)

        task = asyncio.create_task(read_on())
        await enough.wait()
        leaving()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(leave())


@both_clients
@each_step
@pytest.mark.parametrize("leave", [close_sync, close_async, cancel_task])
def test_a_reader_who_leaves_stops_the_model(server: LoopbackServer, client: str, step: str, leave: Leave) -> None:
    slow = Reply(text="Revenue was 14 million in May" + " and more in June" * 40, delay=SLOW)
    script(server, draft=slow if step == "draft" else REFUSAL, final=slow)
    sent: list[int] = []
    leave(chain_over(server, client), 5, lambda: sent.append(server.book[-1].sent))
    entry = entries(server)[step][0]
    assert entry.left
    assert entry.sent <= sent[0] + MOST_AFTER
    assert models_asked(server) == asked_up_to(step)


async def _exhausted(items: AsyncIterator[Any]) -> None:
    async for _ in items:
        pass


@pytest.mark.parametrize(
    "ask",
    [
        lambda chain: chain.ainvoke(QUESTION),
        lambda chain: chain.abatch([QUESTION]),
        lambda chain: _exhausted(chain.astream(QUESTION)),
        lambda chain: _exhausted(chain.astream_events(QUESTION, version="v2")),
        lambda chain: (chain.first_step | chain.second_step).ainvoke({"input": QUESTION}),
    ],
    ids=["ainvoke", "abatch", "astream", "astream_events", "steps"],
)
@each_step
@both_clients
def test_a_caller_who_leaves_before_there_is_any_reply_stops_the_model(
    server: LoopbackServer, client: str, step: str, ask: Callable[[SelfRouteChain], Awaitable[Any]]
) -> None:
    reading = Reply(ANSWER, first_delay=A_MINUTE)
    script(server, draft=reading if step == "draft" else REFUSAL, final=reading)
    chain = chain_over(server, client)

    async def leave() -> None:
        async with anyio.create_task_group() as requests:  # FastAPI drops a request like this
            requests.start_soon(ask, chain)
            while step not in {entry.request.model for entry in server.book}:  # noqa: ASYNC110  the server is in another thread
                await asyncio.sleep(0.01)
            requests.cancel_scope.cancel()
        await asyncio.to_thread(server.settle)

    asyncio.run(leave())
    assert [entry.left for entry in entries(server)[step]] == [True]


@both_clients
@pytest.mark.parametrize("text", ["Ms Okafor chaired it and", "The chair was Ms Okafor from", "S4: unanswerable, and"])
@pytest.mark.parametrize("leave", [close_sync, close_async])
def test_an_answer_flows_while_the_model_writes(server: LoopbackServer, client: str, text: str, leave: Leave) -> None:
    script(server, draft=Reply(text=text + " so on" * 60, delay=0.02))
    sent: list[int] = []
    leave(chain_over(server, client), 1, lambda: sent.append(server.book[-1].sent))
    server.settle()
    assert sent[0] <= len(text.split()) + MOST_AFTER


@both_clients
def test_a_cancelled_ainvoke_stops_the_model(server: LoopbackServer, client: str) -> None:
    script(server, draft=Reply(text="and on " * 100, delay=SLOW))

    async def leave() -> int:
        task = asyncio.create_task(chain_over(server, client).ainvoke(QUESTION))
        while not server.book or server.book[0].sent < 3:  # noqa: ASYNC110  the server is in another thread
            await asyncio.sleep(0.005)
        seen = server.book[0].sent
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return seen

    seen = asyncio.run(leave())
    (draft,) = entries(server)["draft"]
    assert draft.left
    assert draft.sent <= seen + MOST_AFTER


@both_clients
@every_mode
@each_step
def test_an_outer_fallback_takes_over_after_a_500(server: LoopbackServer, client: str, ask: Ask, step: str) -> None:
    other = "gemini" if client == "openai" else "openai"

    def answer(request: Request) -> Reply | str:
        if request.protocol == other:
            return "Mr Lin did."
        return failing(client, 500) if request.model == step else REFUSAL

    server.answer = answer
    output = ask(chain_over(server, client).with_fallbacks([chain_over(server, other)]))
    assert (output["route"], output["answer"]) == ("rag", "Mr Lin did.")
    assert set(output) == KEYS
    assert models_asked(server) == [*asked_up_to(step), "draft"]


@both_clients
@every_mode
def test_an_inner_fallback_takes_over_after_a_500(server: LoopbackServer, client: str, ask: Ask) -> None:
    script(server, draft=failing(client, 500), final=ANSWER)
    models = [chat_model(server, client, name) for name in ("draft", "final")]
    llm = models[0].with_fallbacks(models[1:])
    output = ask(SelfRouteChain(retriever=Passages(), llm=llm, documents=[WHOLE]))
    assert (output["route"], output["answer"]) == ("rag", ANSWER)
    assert output["usage"]["rag"] == counts(entries(server)["final"][0])


def settings(request: Request) -> tuple[Any, Any]:
    """Return the stop words and the temperature of a request."""
    if request.protocol == "openai":
        return request.body.get("stop"), request.body.get("temperature")
    config = request.body.get("generationConfig", {})
    return config.get("stopSequences"), config.get("temperature")


@both_clients
@every_mode
def test_bound_arguments_reach_both_models(server: LoopbackServer, client: str, ask: Ask) -> None:
    script(server, draft=REFUSAL)
    output = ask(chain_over(server, client).bind(stop=["STOP"], temperature=0.25))
    assert output["answer"] == ANSWER
    assert models_asked(server) == ["draft", "final"]
    assert [settings(entry.request) for entry in server.book] == [(["STOP"], 0.25)] * 2


@both_clients
@both_modes
def test_a_key_shows_in_no_trace_and_no_output(server: LoopbackServer, client: str, ask: Ask) -> None:
    script(server, draft=REFUSAL)
    chain, runs = chain_over(server, client), Runs()
    output = ask(chain, callbacks=[runs])
    assert any(KEY in value for value in server.book[0].request.headers.values())
    assert {child.name for child in runs.roots[0].child_runs} >= {"retrieve", "rag", "read_documents", "long_context"}
    for shown in (runs.text(), repr(output), repr(chain), str(chain.get_graph())):
        assert KEY not in shown


BROKEN = {
    "401": lambda _: Reply(status=401),
    "429": lambda client: failing(client, 429),
    "500": lambda client: failing(client, 500),
    "dropped": lambda _: Reply(text=ANSWER, drop_after=1),
}


@both_clients
@both_modes
@each_step
@pytest.mark.parametrize("trouble", BROKEN)
def test_a_key_shows_in_no_error(server: LoopbackServer, client: str, ask: Ask, step: str, trouble: str) -> None:
    if trouble == "dropped":
        skip_if_asked_again(client, ask)
    broken, runs = BROKEN[trouble](client), Runs()
    script(server, draft=broken if step == "draft" else REFUSAL, final=broken)
    with pytest.raises(Exception) as caught:  # noqa: PT011
        ask(chain_over(server, client), callbacks=[runs])
    told = "".join(traceback.format_exception(caught.value))
    assert runs.roots[0].error
    for shown in (told, repr(caught.value), runs.text()):
        assert KEY not in shown
