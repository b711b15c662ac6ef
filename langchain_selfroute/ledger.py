"""`SelfRouteLedger`: adds up what the questions of chains took."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from langchain_core.callbacks import BaseCallbackHandler
from typing_extensions import override

from selfroute.usage.entry import Entry
from selfroute.usage.ledger import Ledger


class SelfRouteLedger(Ledger, BaseCallbackHandler):
    """Adds up what the questions of chains took, and what that saved: a callback handler.

    Give it to a chain, or to whatever the chain is part of, as one of the `callbacks`: bound, with each call, or both.
    It hears of a question once, when it is over, and takes no part in anything else.

    Example:
        ```python
        from langchain_core.documents import Document
        from langchain_core.embeddings import DeterministicFakeEmbedding
        from langchain_core.language_models import FakeListChatModel
        from langchain_core.vectorstores import InMemoryVectorStore
        from langchain_selfroute import SelfRouteChain, SelfRouteLedger

        minutes = Document("Ms Okafor chaired the meeting. ...", metadata={"source": "minutes"})
        store = InMemoryVectorStore.from_documents([minutes], DeterministicFakeEmbedding(size=8))
        llm = FakeListChatModel(responses=["unanswerable", "Ms Okafor"])
        ledger = SelfRouteLedger()
        chain = SelfRouteChain.from_vectorstore(store, llm).with_config(callbacks=[ledger])
        chain.invoke("Who chaired the meeting?")
        print(ledger)
        assert ledger.to_dict()["routes"] == {"rag": 0, "long_context": 1}
        ```
    """

    run_inline = True  # where the others run: it has nothing to do that would block

    @property
    @override
    def ignore_llm(self) -> bool:
        return True

    @property
    @override
    def ignore_chat_model(self) -> bool:
        return True

    @property
    @override
    def ignore_chain(self) -> bool:
        return True

    @property
    @override
    def ignore_agent(self) -> bool:
        return True

    @property
    @override
    def ignore_retriever(self) -> bool:
        return True

    @property
    @override
    def ignore_retry(self) -> bool:
        return True

    @property
    @override
    def ignore_custom_event(self) -> bool:
        return True


def entry_recorder(handlers: Sequence[BaseCallbackHandler]) -> Callable[[Entry], None] | None:
    """What adds an entry to the ledgers among the handlers of a run, once to each; None if there is none."""
    # Callbacks may hold one twice: bound, and given with the call.
    ledgers = {handler for handler in handlers if isinstance(handler, SelfRouteLedger)}

    def book(entry: Entry) -> None:
        for ledger in ledgers:
            ledger.add(entry)

    return book if ledgers else None
