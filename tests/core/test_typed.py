"""What a user writes against both packages has the types that the user expects: run here, and read by `make lint`."""

from __future__ import annotations

from typing import Any, Literal

from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import Document as LlamaDocument
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.llms import MockLLM
from typing_extensions import assert_type

import langchain_selfroute
import llamaindex_selfroute
from langchain_selfroute import SelfRouteChain, SelfRouteOutput
from llamaindex_selfroute import SelfRouteQueryEngine
from selfroute.answerability import Signal, declines
from selfroute.checking import Findings
from selfroute_workbench.evaluation import Evaluation, Question, evaluate

TEXT, QUESTION = "Ms Okafor took the chair.", "Who chaired the meeting?"


def chain_of(*replies: str) -> SelfRouteChain:
    # The store's fake embedding needs numpy, which LlamaIndex brings along.
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    more = Document("Tea was served at noon.", metadata={"source": "minutes"})
    store.add_documents([Document(TEXT, metadata={"source": "minutes"}), more])
    return SelfRouteChain(
        retriever=store.as_retriever(search_kwargs={"k": 1}),
        llm=FakeListChatModel(responses=list(replies)),
        documents=langchain_selfroute.StoredDocuments(store, source_key="source"),
        max_context_tokens=900_000,
    )


def engine_of() -> SelfRouteQueryEngine:
    index = VectorStoreIndex.from_documents([LlamaDocument(text=TEXT)], embed_model=MockEmbedding(embed_dim=8))
    documents = llamaindex_selfroute.StoredDocuments(index)
    return SelfRouteQueryEngine(index.as_retriever(), documents=documents, llm=MockLLM(max_tokens=3))


async def test_what_a_chain_returns_is_typed() -> None:
    chain, ledger = chain_of("unanswerable", "Ms Okafor"), langchain_selfroute.SelfRouteLedger()

    result = assert_type(chain.invoke(QUESTION, config={"callbacks": [ledger]}), SelfRouteOutput)
    assert_type(result["answer"], str)
    assert_type(result["context"], list[Document])
    assert assert_type(result["route"], Literal["rag", "sections", "long_context"]) == "long_context"
    assert assert_type(result["answerable"], bool)
    assert assert_type(result["decision"]["signal"], Signal) == "sentinel"
    assert assert_type(result["usage"]["total_tokens"], int) > 0
    assert_type(result["usage"]["cost"], str | None)
    if step := result["usage"]["long_context"]:
        assert_type(step["cached_tokens"], int)

    assert_type(await chain.ainvoke({"input": QUESTION, "chat_history": []}), SelfRouteOutput)
    assert len(assert_type(chain.batch([QUESTION]), list[SelfRouteOutput])) == 1
    for chunk in chain.stream(QUESTION):
        assert_type(chunk, SelfRouteOutput)
    assert_type(ledger.to_dict(), dict[str, Any])


def test_what_an_engine_returns_is_typed() -> None:
    response = assert_type(engine_of().query(QUESTION), RESPONSE_TYPE)
    assert response.metadata is not None
    assert response.metadata["route"] == "rag"
    assert response.source_nodes


async def test_what_a_check_returns_is_typed() -> None:
    for findings in (assert_type(chain_of("Ms Okafor").check(), Findings), assert_type(engine_of().check(), Findings)):
        assert assert_type(findings.ok, bool)
        for finding in findings:
            assert_type(finding.ok, bool | None)
            assert assert_type(finding.message, str)
    assert_type(await chain_of("Ms Okafor").acheck({"input": QUESTION}), Findings)
    assert_type(await engine_of().acheck(QUESTION), Findings)


def test_what_an_evaluation_returns_is_typed() -> None:
    questions = [Question("minutes", "1", QUESTION, ("Ms Okafor",))]
    result = assert_type(evaluate(chain_of("Ms Okafor"), questions), Evaluation)
    assert [assert_type(one.score, float) for one in result.results] == [1.0] * 5


def test_a_verdict_is_typed() -> None:
    verdict = declines("The passages do not mention a ferry.")
    assert assert_type(verdict.signal, Signal)
    assert assert_type(verdict.evidence, str)
