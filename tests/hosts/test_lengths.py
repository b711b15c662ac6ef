"""Both hosts: what an answered question asks of a store to estimate its savings, and when these are known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from llama_index.core.instrumentation import get_dispatcher

import langchain_selfroute
import llamaindex_selfroute
import one_store
from langchain_selfroute import SelfRouteChain
from llamaindex_selfroute import SelfRouteQueryEngine
from llamaindex_selfroute.internals import fixed
from one_store import ANSWER, QUESTION, Model

every_framework = pytest.mark.parametrize("framework", ["langchain", "llamaindex"])
OTHER = QUESTION.replace("orchard", "bakery")  # another document


class _Counting:
    """Answers from the passage of one document, and counts how often somebody asks what may be read."""

    def __init__(self, framework: str) -> None:
        self.model, self.times = Model(draft=ANSWER), 0
        package: Any = langchain_selfroute if framework == "langchain" else llamaindex_selfroute
        counting = self

        class Counted(package.StoredDocuments):  # type: ignore[misc,name-defined]
            def _access(self, wall: Any) -> Any:
                counting.times += 1
                return super()._access(wall)

        self.ledger = package.SelfRouteLedger()
        if framework == "langchain":
            store = one_store.store("chroma")
            documents = Counted(store)
            retriever = store.as_retriever(search_kwargs={"k": 1})
            chain = SelfRouteChain(retriever=retriever, llm=one_store.runnable(self.model), documents=documents)
            self._ask: Any = lambda question: chain.invoke(question, {"callbacks": [self.ledger]})
        else:
            index = one_store.index("chroma")
            documents = Counted(index)
            found = index.as_retriever(similarity_top_k=1)
            engine = SelfRouteQueryEngine(found, llm=one_store.llm(self.model), documents=documents)
            self._ask = engine.query

    def ask(self, question: str, *, draft: str = ANSWER) -> int:
        """Ask, and return how often somebody asked what may be read."""
        before, self.model.draft = self.times, draft
        self._ask(question)
        return self.times - before

    @property
    def saved(self) -> tuple[int, int]:
        """How many questions have known savings, and the tokens that reading their documents takes."""
        savings = self.ledger.to_dict()["savings"]
        return savings["queries"], savings["long_context_only"] or 0


@pytest.fixture
def counting(framework: str) -> Iterator[_Counting]:
    """A pipeline of a framework, to whose questions its ledger listens."""
    made = _Counting(framework)
    handlers = get_dispatcher().event_handlers
    if framework == "llamaindex":
        handlers.append(made.ledger)
    yield made
    if made.ledger in handlers:
        handlers.remove(made.ledger)


@every_framework
def test_an_answered_question_asks_nothing_of_the_store_before_its_documents_were_read(
    framework: str, counting: _Counting
) -> None:
    assert counting.ask(QUESTION) == 0
    assert counting.saved == (0, 0)
    assert counting.times == 0  # nor does the ledger
    assert counting.ask(OTHER, draft="unanswerable") > 0
    assert counting.ask(QUESTION) == 0  # another document was read
    assert counting.ask(OTHER) == 1


@every_framework
def test_savings_are_known_once_a_question_has_read_the_documents(framework: str, counting: _Counting) -> None:
    counting.ask(QUESTION)
    assert counting.saved == (0, 0)
    counting.ask(QUESTION, draft="unanswerable")
    questions, read = counting.saved
    assert questions == 1  # the one before stays unknown
    counting.ask(QUESTION)
    assert counting.saved == (2, pytest.approx(2 * read, rel=0.05))


def test_what_is_kept_of_a_retriever_for_it_is_not_copied_again_while_it_stays_the_same() -> None:
    retriever: Any = one_store.index().as_retriever()
    first, again = fixed(retriever), fixed(retriever)
    assert first._node_ids is again._node_ids is not retriever._node_ids
    gone = retriever._node_ids.pop()
    assert gone in first._node_ids
    assert gone not in fixed(retriever)._node_ids
