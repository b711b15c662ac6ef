"""Two questions on the same documents: what their prompts share, and who waits for whom, in both frameworks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import ChatOpenAI
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.llms.openai_like import OpenAILike

import own_addresses
from both_parts import AWAITED, Pipeline, everywhere, is_langchain
from langchain_selfroute import SelfRouteChain, SelfRouteLedger
from llamaindex_selfroute import SelfRouteQueryEngine
from loopback import LoopbackServer, Reply, Request
from selfroute.calls import asking
from selfroute.calls.flights import Flights
from word_vectors import LangChainWords, LlamaIndexWords

ANSWER = "It says so."
DRAFT, FINAL = "gpt-4o", "gpt-4o-mini"
WORDS = {
    "ash.md": "harbour lantern",
    "birch.md": "granite orchard",
}
QUESTIONS = (
    "What of harbour lantern, granite orchard?",
    "And granite orchard granite orchard, harbour lantern?",
)

pytestmark = pytest.mark.usefixtures("frozen")


@pytest.fixture(autouse=True)
def no_earlier_flights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "FLIGHTS", Flights())


def text_of(name: str, paragraphs: int = 3) -> str:
    """Return a document that is found by its own words."""
    return "\n\n".join(f"The whole of {name}, {n}: {WORDS[name]}." for n in range(paragraphs))


def stored(where: str, texts: dict[str, str], *, k: int, **fields: Any) -> Any:
    """Return a chain or engine over a store with documents, cut in paragraphs."""
    cut = [(name, text.index(paragraph), paragraph) for name, text in texts.items() for paragraph in text.split("\n\n")]
    if is_langchain(where):
        store = InMemoryVectorStore(LangChainWords())
        store.add_documents([Document(text, metadata={"source": name, "start_index": at}) for name, at, text in cut])
        return SelfRouteChain.from_vectorstore(store, k=k, **fields)
    nodes = []
    for name, at, text in cut:
        source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=name)}
        nodes.append(TextNode(text=text, start_char_idx=at, end_char_idx=at + len(text), relationships=source))
    index = VectorStoreIndex(nodes, embed_model=LlamaIndexWords())
    streaming = where.endswith("stream")
    return SelfRouteQueryEngine.from_index(index, similarity_top_k=k, streaming=streaming, **fields)


async def ask(asked: Any, where: str, question: str) -> str:
    """Ask a chain or engine; return the answer."""
    return (await Pipeline(where, asked).ask(question)).answer  # type: ignore[no-any-return]


def is_whole(request: Request) -> bool:
    """Return whether it is the second step that asks."""
    return request.model == FINAL


def reads(server: LoopbackServer) -> list[str]:
    """Return the prompts of the second step."""
    server.settle()
    return [entry.request.prompt for entry in server.book if is_whole(entry.request)]


def shared_by(first: str, second: str) -> str:
    """Return how two texts begin."""
    return "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


def answer(request: Request) -> str:
    return ANSWER if is_whole(request) else "unanswerable"


def models(server: LoopbackServer, where: str, *, own: bool = True, **fields: Any) -> dict[str, Any]:
    """Return models for both steps that find common beginnings by themselves, or at an address without a cache."""

    def made(name: str) -> Any:
        if own:
            return own_addresses.model(where, server, "openai", model=name, **fields)
        if is_langchain(where):
            return ChatOpenAI(base_url=server.openai_url, api_key="k", model=name, max_retries=0)
        at: Any = {"api_base": server.openai_url, "is_chat_model": True, "context_window": 200_000}
        return OpenAILike(api_key="k", model=name, max_retries=0, **at)

    return {"llm": made(DRAFT), "long_context_llm": made(FINAL)}


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(answer) as started:
        yield started


@everywhere
async def test_the_same_documents_in_another_order_make_the_same_prefix(server: LoopbackServer, where: str) -> None:
    texts = {name: text_of(name) for name in WORDS}
    asked = stored(where, texts, k=6, **models(server, where, own=False))
    first, second = [(await Pipeline(where, asked).ask(question)).read for question in QUESTIONS]
    assert first == [*reversed(second)]  # best first, each
    shared = shared_by(*reads(server)[-2:])
    assert all(text in shared for text in texts.values())


@everywhere
async def test_passages_near_each_other_make_the_same_trimmed_prefix(server: LoopbackServer, where: str) -> None:
    paragraphs = [f"The whole of part {n}: " + "filler text of no interest " * 8 for n in range(100)]
    paragraphs[50], paragraphs[52] = f"Here is {WORDS['ash.md']}.", f"Here is {WORDS['birch.md']}."
    text = "\n\n".join(paragraphs)
    fields = {**models(server, where, own=False), "max_context_tokens": 2_000}
    asked = stored(where, {"ash.md": text}, k=1, **fields)
    # From the first one it is learned how the provider counts.
    for question in ("What of harbour lantern?", "Where is the harbour lantern?", "Where is the granite orchard?"):
        await ask(asked, where, question)
    first, second = reads(server)[-2:]
    shared = shared_by(first, second)
    assert WORDS["ash.md"] in shared
    assert WORDS["birch.md"] in shared
    assert len(shared) > 0.9 * len(first)


# Single flight


LONG = "\n\n".join(f"The whole of part {n}: " + "filler text of no interest " * 8 for n in range(150))


def asked_at_once(asked: Any, where: str, questions: list[str]) -> list[str]:
    """Ask all questions at once, and return the answers."""

    async def all_of_them() -> list[str]:
        return await asyncio.gather(*(ask(asked, where, question) for question in questions))

    if where in AWAITED:
        return asyncio.run(all_of_them())
    with ThreadPoolExecutor(len(questions)) as pool:
        return list(pool.map(lambda one: asyncio.run(ask(asked, where, one)), questions))


def long_document(where: str, **fields: Any) -> Any:
    return stored(where, {"ash.md": f"{text_of('ash.md', 1)}\n\n{LONG}"}, k=1, **fields)


def on_harbours(number: int) -> list[str]:
    """Return questions on one document."""
    return [f"What of harbour lantern, {n}?" for n in range(number)]


class Slow:
    """Answers the second step slowly, the first of its requests with a reply of its own.

    Attributes:
        arrived: For each request of the second step, how many others were being answered when it came.
    """

    def __init__(self, server: LoopbackServer, first: Reply) -> None:
        self.server, self.first = server, first
        self.arrived: list[int] = []
        server.answer = self

    def __call__(self, request: Request) -> Reply:
        """Answer a request."""
        if not is_whole(request):
            return Reply("unanswerable")
        others = [entry for entry in self.server.book if is_whole(entry.request) and entry.request is not request]
        self.arrived.append(sum(not entry.done for entry in others))
        return self.first if len(self.arrived) == 1 else Reply(ANSWER, first_delay=0.3)


@everywhere
def test_questions_on_one_document_wait_until_the_first_reply_begins(server: LoopbackServer, where: str) -> None:
    # A reply whose end takes longer than its beginning.
    slow = Slow(server, Reply(pieces=["It says", " so."], first_delay=0.3, delay=0.1))
    asked = long_document(where, **models(server, where))
    assert asked_at_once(asked, where, on_harbours(5)) == [ANSWER] * 5
    streams = where.endswith("stream")
    assert slow.arrived[:2] == [0, int(streams)]  # what is not streamed begins at its end
    assert len(slow.arrived) == 5
    assert max(slow.arrived) > 1  # and the others come together


NOBODY_WAITS: dict[str, Callable[[LoopbackServer, str], Any]] = {
    "no cache": lambda server, where: long_document(where, **models(server, where, own=False)),
    "off": lambda server, where: long_document(where, **models(server, where), prompt_cache="off"),
    "too short": lambda server, where: stored(where, {"ash.md": text_of("ash.md")}, k=1, **models(server, where)),
}


@pytest.mark.parametrize("name", NOBODY_WAITS)
@pytest.mark.parametrize("where", ["langchain ainvoke", "llamaindex aquery"])
def test_nobody_waits_where_no_cache_is_to_be_hit(server: LoopbackServer, where: str, name: str) -> None:
    slow = Slow(server, Reply(ANSWER, first_delay=0.3))
    asked = NOBODY_WAITS[name](server, where)
    assert asked_at_once(asked, where, on_harbours(4)) == [ANSWER] * 4
    assert slow.arrived == [0, 1, 2, 3]


@pytest.mark.parametrize("where", ["langchain ainvoke", "llamaindex aquery"])
async def test_a_first_question_that_is_cancelled_lets_the_others_go(server: LoopbackServer, where: str) -> None:
    slow = Slow(server, Reply(ANSWER, hold_after=0, first_delay=0.3))
    asked = long_document(where, **models(server, where))
    first = asyncio.create_task(ask(asked, where, "What of harbour lantern?"))
    while not slow.arrived:  # noqa: ASYNC110 - another thread answers
        await asyncio.sleep(0.01)
    others = [asyncio.create_task(ask(asked, where, question)) for question in on_harbours(2)]
    await asyncio.sleep(0.3)
    assert slow.arrived == [0]
    first.cancel()
    assert await asyncio.gather(*others) == [ANSWER] * 2


def test_accounts_do_not_wait_for_each_other(server: LoopbackServer) -> None:
    where = "langchain invoke"
    slow = Slow(server, Reply(ANSWER, first_delay=0.5))
    chains = [long_document(where, **models(server, where, api_key=key)) for key in ("sk-1", "sk-2")]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda chain: chain.invoke("What of harbour lantern?"), chains))
    assert slow.arrived == [0, 1]


def test_the_ledger_says_what_came_from_each_models_cache(server: LoopbackServer) -> None:
    where = "langchain invoke"
    server.answer = lambda request: Reply(ANSWER, cached_tokens=300) if is_whole(request) else Reply("unanswerable")
    ledger = SelfRouteLedger()
    long_document(where, **models(server, where)).invoke("What of harbour lantern?", {"callbacks": [ledger]})
    server.settle()
    taken = {entry.request.model: entry.input_tokens for entry in server.book}
    none = {"cached_tokens": 0, "cache_write_tokens": 0}
    assert ledger.to_dict()["models"] == {
        f"openai:{DRAFT}": {"input_tokens": taken[DRAFT], **none, "hit_rate": 0.0},
        f"openai:{FINAL}": {"input_tokens": taken[FINAL], **none, "cached_tokens": 300, "hit_rate": 300 / taken[FINAL]},
    }
    assert f"prompt cache of openai:{FINAL}: " in str(ledger)
