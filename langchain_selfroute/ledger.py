"""The `SelfRouteLedger`, which adds up the usage of chains."""

from __future__ import annotations

from langchain_core.callbacks import BaseCallbackHandler

from selfroute.usage.ledger import Ledger


class SelfRouteLedger(Ledger, BaseCallbackHandler):
    r"""A callback handler that adds up the tokens, costs and times of questions, and what Self-Route saved.

    Pass it in the `callbacks` of a chain, or of anything that the chain is part of: bound with `with_config`, with each
    call, or both. Each question is counted once, when it ends. The ledger ignores all other events.

    Example:
        ```python
        from langchain_core.embeddings import DeterministicFakeEmbedding
        from langchain_core.language_models import FakeListChatModel
        from langchain_core.vectorstores import InMemoryVectorStore
        from langchain_selfroute import SelfRouteChain, SelfRouteLedger

        store = InMemoryVectorStore.from_texts(["Ms Okafor chaired the meeting."], DeterministicFakeEmbedding(size=8))
        llm = FakeListChatModel(responses=["90 90\nMs Okafor"])
        ledger = SelfRouteLedger()
        chain = SelfRouteChain.from_vectorstore(store, llm).with_config(callbacks=[ledger])
        chain.invoke("Who chaired the meeting?")
        print(ledger)
        assert ledger.to_dict()["routes"] == {"rag": 1, "sections": 0, "long_context": 0}
        ```
    """

    run_inline = True  # it never blocks, so it needs no thread

    ignore_llm = ignore_chat_model = ignore_chain = ignore_agent = True
    ignore_retriever = ignore_retry = ignore_custom_event = True
