"""Two questions on the same documents: what their prompts share, and who waits for whom, in both frameworks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

import own_addresses
from both_parts import AWAITED, Pipeline, everywhere, is_langchain
from langchain_selfroute import SelfRouteChain
from llamaindex_selfroute import SelfRouteQueryEngine
from loopback import LoopbackServer, Reply, Request
from selfroute.calls import model_calls
from selfroute.calls.flights import Flights
from word_vectors import LangChainWords, LlamaIndexWords

ANSWER = "It says so."
DRAFT, FINAL = "gpt-4o", "gpt-4o-mini"
WORDS = {"ash.md": "harbour lantern", "birch.md": "granite orchard"}
LONG = "\n\n".join(f"The whole of part {n}: " + "filler text of no interest " * 8 for n in range(150))

pytestmark = pytest.mark.usefixtures("frozen")


@pytest.fixture(autouse=True)
def no_earlier_flights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_calls, "FLIGHTS", Flights())


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(lambda request: ANSWER if is_whole(request) else "unanswerable") as started:
        yield started


def text_of(name: str, paragraphs: int = 3) -> str:
    """Return a document that is found by its own words."""
    return "\n\n".join(f"The whole of {name}, {n}: {WORDS[name]}." for n in range(paragraphs))


def stored(server: LoopbackServer, where: str, texts: dict[str, str], *, k: int, key: str = "sk", **fields: Any) -> Any:
    """Return a chain or engine over a store with documents, cut in paragraphs."""
    steps = {"llm": DRAFT, "long_context_llm": FINAL}
    llms = {one: own_addresses.model(where, server, "openai", model=name, api_key=key) for one, name in steps.items()}
    cut = [(name, text.index(paragraph), paragraph) for name, text in texts.items() for paragraph in text.split("\n\n")]
    if is_langchain(where):
        store = InMemoryVectorStore(LangChainWords())
        store.add_documents([Document(text, metadata={"source": name, "start_index": at}) for name, at, text in cut])
        return SelfRouteChain.from_vectorstore(store, k=k, **llms, **fields)
    nodes = []
    for name, at, text in cut:
        source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=name)}
        nodes.append(TextNode(text=text, start_char_idx=at, end_char_idx=at + len(text), relationships=source))
    index = VectorStoreIndex(nodes, embed_model=LlamaIndexWords())
    streaming = where.endswith("stream")
    return SelfRouteQueryEngine.from_index(index, similarity_top_k=k, streaming=streaming, **llms, **fields)


def is_whole(request: Request) -> bool:
    """Return whether it is the second step that asks."""
    return request.model == FINAL


def shared_by_last_two(server: LoopbackServer) -> str:
    """Return how the last two prompts of the second step begin."""
    server.settle()
    prompts = [entry.request.prompt for entry in server.book if is_whole(entry.request)][-2:]
    return "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(*prompts, strict=False)))


@everywhere
async def test_prefix_is_the_same_for_documents_in_another_order(server: LoopbackServer, where: str) -> None:
    texts = {name: text_of(name) for name in WORDS}
    asked = stored(server, where, texts, k=2)  # the draft reads, and all lead to documents
    questions = "What of harbour lantern, granite orchard?", "Granite orchard granite orchard, harbour lantern?"
    first, second = [(await Pipeline(where, asked).ask(question)).read for question in questions]
    assert first == [*reversed(second)]  # best first, each
    assert all(text in shared_by_last_two(server) for text in texts.values())


@everywhere
async def test_prefix_is_the_same_for_passages_near_each_other(server: LoopbackServer, where: str) -> None:
    paragraphs = LONG.split("\n\n")
    paragraphs[50], paragraphs[52] = f"Here is {WORDS['ash.md']}.", f"Here is {WORDS['birch.md']}."
    asked = stored(server, where, {"ash.md": "\n\n".join(paragraphs)}, k=1, max_context_tokens=2_000)
    # From the first one it is learned how the provider counts.
    for question in ("What of harbour lantern?", "Where is the harbour lantern?", "Where is the granite orchard?"):
        await Pipeline(where, asked).ask(question)
    shared = shared_by_last_two(server)
    assert all(words in shared for words in WORDS.values())


class Slow:
    """Answers the second step slowly; `arrived` counts how many requests were being answered as each one came."""

    def __init__(self, server: LoopbackServer, first: Reply) -> None:
        self.server, self.first = server, first
        self.arrived: list[int] = []
        server.answer = self

    def __call__(self, request: Request) -> Reply:
        if not is_whole(request):
            return Reply("unanswerable")
        others = [entry for entry in self.server.book if is_whole(entry.request) and entry.request is not request]
        self.arrived.append(sum(not entry.done for entry in others))
        return self.first if len(self.arrived) == 1 else Reply(ANSWER, first_delay=0.3)


def at_once(asked: list[Any], where: str) -> list[str]:
    """Ask all chains or engines at once, and return the answers."""
    questions = [(Pipeline(where, one), f"What of harbour lantern, {number}?") for number, one in enumerate(asked)]

    async def answers(some: Any) -> list[str]:
        return [found.answer for found in await asyncio.gather(*(one.ask(question) for one, question in some))]

    if where in AWAITED:
        return asyncio.run(answers(questions))
    with ThreadPoolExecutor(len(questions)) as pool:
        return [text for found in pool.map(lambda one: asyncio.run(answers([one])), questions) for text in found]


@everywhere
def test_questions_wait_for_the_first_reply(server: LoopbackServer, where: str) -> None:
    # A reply whose end takes longer than its beginning.
    slow = Slow(server, Reply(pieces=["It says", " so."], first_delay=0.3, delay=0.1))
    asked = stored(server, where, {"ash.md": f"{text_of('ash.md', 1)}\n\n{LONG}"}, k=1)
    assert at_once([asked] * 5, where) == [ANSWER] * 5
    assert slow.arrived[:2] == [0, int(where.endswith("stream"))]  # what is not streamed begins at its end
    assert len(slow.arrived) == 5
    assert max(slow.arrived) > 1  # and the others come together


@pytest.mark.parametrize("where", ["langchain ainvoke", "llamaindex aquery"])
@pytest.mark.parametrize("why", ["off", "too short", "other accounts"])
def test_questions_do_not_wait(server: LoopbackServer, where: str, why: str) -> None:
    slow = Slow(server, Reply(ANSWER, first_delay=0.3))
    text = text_of("ash.md") if why == "too short" else f"{text_of('ash.md', 1)}\n\n{LONG}"
    keys = "abcd" if why == "other accounts" else "aaaa"
    wish = "off" if why == "off" else "auto"
    asked = [stored(server, where, {"ash.md": text}, k=1, key=key, prompt_cache=wish) for key in keys]
    assert at_once(asked, where) == [ANSWER] * 4
    assert slow.arrived == [0, 1, 2, 3]
