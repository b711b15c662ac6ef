"""Chains and engines against a real model: usage, endings, hang-ups, windows, caches, many at once.

The model is SmolLM2-135M-Instruct. This proves the wire and the forms, and says nothing about quality: a model of this
size hardly ever declines, so that its replies are forced by grammars, which the server applies.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI
from llama_index.core import Document as Whole
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.llms.openai_like import OpenAILike

from langchain_selfroute import SelfRouteChain, SelfRouteLedger
from llamaindex_selfroute import SelfRouteQueryEngine
from real_parts import Served
from selfroute.errors import NoReplyError

pytest.importorskip("xllamacpp", reason="a real model comes with `make test-real`")
pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
QUESTION = "Who chaired the meeting in April?"
TEXT = "Ms Okafor chaired the meeting in April. The committee agreed on the budget. Tea was served at five."
DECLINES = 'root ::= "unanswerable. The passages" [a-z ]+'
SHORT = 'root ::= "Ms Okafor."'
NUMBERS = 'root ::= "90 80\\n" "Ms Okafor."'
HOSTS = pytest.mark.parametrize("host", ["langchain", "llamaindex"])


class Found(BaseRetriever):
    """Finds one passage."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=TextNode(text=TEXT), score=1.0)]


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    """A client of one test's event loop: those that ChatOpenAI makes itself are shared by all."""
    async with httpx.AsyncClient(timeout=300) as opened:
        yield opened


def llm_of(
    host: str, served: Served, *, grammar: str = SHORT, tokens: int = 24, client: httpx.AsyncClient | None = None
) -> Any:
    if host == "langchain":
        return ChatOpenAI(
            model="smollm2", base_url=served.url, api_key="none", temperature=0, stream_usage=True, max_retries=0,
            max_tokens=tokens, extra_body={"grammar": grammar} if grammar else None, http_async_client=client,
        )  # fmt: skip
    more = {"extra_body": {"grammar": grammar}} if grammar else {}
    return OpenAILike(
        model="smollm2", api_base=served.url, api_key="none", temperature=0, is_chat_model=True, max_retries=0,
        max_tokens=tokens, context_window=8192, additional_kwargs=more, async_http_client=client,
    )  # fmt: skip


def pipeline_of(host: str, llm: Any, final: Any = None, *, text: str = TEXT, **options: Any) -> Any:
    if host == "langchain":
        passage = Document(TEXT, metadata={"source": "minutes"})
        return SelfRouteChain(
            retriever=RunnableLambda(lambda _: [passage]), llm=llm, long_context_llm=final,
            documents=[Document(text, metadata={"source": "minutes"})], **options,
        )  # fmt: skip
    return SelfRouteQueryEngine(Found(), documents=[Whole(text=text)], llm=llm, long_context_llm=final, **options)


def told(result: Any) -> dict[str, Any]:
    """What came out, in the words of neither framework."""
    return dict(result) if isinstance(result, dict) else {**result.metadata, "answer": str(result)}


def ask(pipeline: Any, question: str = QUESTION) -> dict[str, Any]:
    return told(pipeline.invoke(question) if hasattr(pipeline, "invoke") else pipeline.query(question))


@HOSTS
def test_an_answer_comes_with_the_tokens_that_the_server_counted(host: str, served: Served) -> None:
    result = ask(pipeline_of(host, llm_of(host, served)))
    assert (result["answer"], result["route"], result["answerable"]) == ("Ms Okafor.", "rag", True)
    usage = result["usage"]
    assert usage["estimated"] is False
    assert usage["rag"]["output_tokens"] >= 3
    assert 60 < usage["rag"]["input_tokens"] < 200


@HOSTS
async def test_wire_rambling_refusal_is_hung_up_on(host: str, served: Served, client: httpx.AsyncClient) -> None:
    """The server's log says that it cancelled the draft."""
    before = served.count("cancel task")
    draft = llm_of(host, served, grammar=DECLINES, tokens=400, client=client)
    final = llm_of(host, served, client=client)
    options: dict[str, Any] = {} if host == "langchain" else {"streaming": True}
    pipeline = pipeline_of(host, draft, final, text=f"{TEXT} The next meeting was set for May.", **options)
    began = time.monotonic()
    if host == "langchain":
        text = "".join([chunk.get("answer", "") async for chunk in pipeline.astream(QUESTION)])
    else:
        response: Any = await pipeline.aquery(QUESTION)
        text = "".join([piece async for piece in response.async_response_gen()])
    assert text == "Ms Okafor."
    assert time.monotonic() - began < 60
    await asyncio.to_thread(served.settle, "cancel task", before + 1)


@HOSTS
def test_two_numbers_of_a_graded_draft_are_read_and_not_shown(host: str, served: Served) -> None:
    result = ask(pipeline_of(host, llm_of(host, served, grammar=NUMBERS), answerability="graded"))
    assert (result["answer"], result["route"]) == ("Ms Okafor.", "rag")
    assert (result["decision"]["prospect"], result["decision"]["confidence"]) == (90, 80)


def test_a_structured_reply_is_read(served: Served) -> None:
    """The server fills in the schema; what this model fills in is another matter."""
    chain = pipeline_of("langchain", llm_of("langchain", served, grammar="", tokens=120), answerability="structured")
    try:
        result = ask(chain)
    except NoReplyError as error:
        assert "answer" in str(error)  # noqa: PT017 - cut off, or empty: both are said
    else:
        assert isinstance(result["answerable"], bool)


@HOSTS
def test_wire_window_that_is_too_small(host: str, small: Served) -> None:
    text = f"{'The committee met in the hall. ' * 700} {TEXT}"
    draft, final = llm_of(host, small, grammar='root ::= "unanswerable"'), llm_of(host, small)
    pipeline = pipeline_of(host, draft, final, text=text)
    result = ask(pipeline)
    assert (result["answer"], result["route"]) == ("Ms Okafor.", "long_context")
    assert 500 < result["usage"]["long_context"]["input_tokens"] < 2_048


def test_wire_second_question_comes_from_the_cache(served: Served) -> None:
    text = " ".join(f"Item {number} of the agenda was moved to June." for number in range(60)) + f" {TEXT}"
    draft, final = (llm_of("langchain", served, grammar=one) for one in ('root ::= "unanswerable"', SHORT))
    chain = pipeline_of("langchain", draft, final, text=text)
    first, second = ask(chain)["usage"], ask(chain, "Who was in the chair in April?")["usage"]
    assert second["long_context"]["cached_tokens"] > 0.8 * first["long_context"]["input_tokens"]


async def test_sixteen_at_once_are_all_answered_and_counted(served: Served, client: httpx.AsyncClient) -> None:
    ledger = SelfRouteLedger()
    chain = pipeline_of("langchain", llm_of("langchain", served, client=client))
    results = await chain.abatch([QUESTION] * 16, {"callbacks": [ledger]})
    assert {result["answer"] for result in results} == {"Ms Okafor."}
    figures = ledger.to_dict()
    assert figures["queries"] == 16
    counted = sum(result["usage"]["rag"]["input_tokens"] for result in results)
    assert figures["tokens"]["rag"]["input_tokens"] == counted
