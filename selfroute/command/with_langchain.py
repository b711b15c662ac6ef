"""The command with LangChain."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from operator import itemgetter
from typing import Any, cast

from chromadb.api import ClientAPI
from langchain.chat_models import init_chat_model
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_selfroute import SelfRouteChain, SelfRouteLedger, StoredDocuments
from selfroute.calls.settings import reach_of
from selfroute.command.citing import in_files
from selfroute.command.framework import Output, Show, documents_read
from selfroute.command.history import REWORD, Turn
from selfroute.command.models import no_provider, unusable
from selfroute.command.steering import Steering
from selfroute.command.texts import IndexedPassage, Text, split
from selfroute.demo import corpus, recorded
from selfroute.demo.with_langchain import ExtractiveReader, RecordedModel, load_embeddings
from selfroute.usage.tokens import count_tokens

__all__ = ["NAME", "extractive_reader", "load_embeddings", "load_model", "open_index", "recorded_model"]

NAME = "LangChain"


def load_model(provider: str, model: str, *, base_url: str | None, **more: Any) -> BaseChatModel:
    """Make a chat model of any provider that `langchain.chat_models.init_chat_model` knows.

    Args:
        provider: The provider.
        model: Its name for the model.
        base_url: A server to ask in place of the provider's own.
        more: Other fields of the provider's class.

    Raises:
        ConfigurationError: The provider is unknown, or a key is missing.
        ImportError: The provider's package is not installed.
    """
    fields: dict[str, Any] = {}
    if base_url:
        fields["base_url"] = base_url
    if provider == "openai" and (base_url or any(map(os.environ.get, ("OPENAI_BASE_URL", "OPENAI_API_BASE")))):
        fields["stream_usage"] = True  # off by default with another server
        if base_url and not os.environ.get("OPENAI_API_KEY"):
            fields["api_key"] = "none"
    try:
        made: BaseChatModel = init_chat_model(model, model_provider=provider, **fields, **more)
    except ImportError:
        raise
    except Exception as error:  # each provider's client has errors of its own
        if "Unsupported provider" in str(error):
            raise no_provider(provider, model, known=str(error).rpartition("are: ")[2]) from error
        raise unusable(provider, model, error=error) from error
    return made


def extractive_reader(embeddings: Embeddings) -> ExtractiveReader:
    """Return the model that answers if the user names none."""
    return ExtractiveReader(embeddings=embeddings)


def recorded_model() -> RecordedModel:
    """Return the model that answers the demo's questions from the recording that comes with the package."""
    return RecordedModel()


def recorded_chain(embeddings: Embeddings) -> SelfRouteChain:
    """Return a chain over the documents of the demo, in memory, that the recording answers."""
    passages = [passage for name, text in corpus.load_documents().items() for passage in split(Text(name, text))]
    documents = [Document(passage.text, metadata=passage.metadata, id=passage.id) for passage in passages]
    store = InMemoryVectorStore.from_documents(documents, embeddings)
    return SelfRouteChain.from_vectorstore(store, recorded_model(), k=recorded.K, priced_as=recorded.PRICED_AS)


def open_index(client: ClientAPI, collection: str, embeddings: Embeddings) -> LangChainIndex:
    """Open the index in an existing collection."""
    store = Chroma(collection, embeddings, client=client, create_collection_if_not_exists=False)
    return LangChainIndex(store)


class LangChainIndex:
    """Passages in LangChain's Chroma."""

    def __init__(self, store: Chroma) -> None:
        """Take the store."""
        self._store = store

    def add(self, passages: Sequence[IndexedPassage]) -> None:
        """Embed passages and add them."""
        self._store.add_documents(
            [Document(passage.text, metadata=passage.metadata, id=passage.id) for passage in passages]
        )

    @contextmanager
    def open_session(  # noqa: PLR0913 - what a session needs
        self,
        texts: Sequence[Text],
        *,
        llm: BaseChatModel,
        long_context_llm: BaseChatModel | None,
        k: int,
        priced_as: str | None,
        steering: Steering,
    ) -> Iterator[LangChainSession]:
        """Build the chain; a chain of your own needs no more than this."""
        own = {"text_key": {"$in": [text.key for text in texts]}}
        options: dict[str, Any] = {
            "long_context_llm": long_context_llm,
            "citations": True,
            "priced_as": priced_as,
            "draft_passages": k,
            **steering.options(),
        }
        chain = SelfRouteChain.from_vectorstore(self._store, llm, k=k, filter=own, **options)
        documents = StoredDocuments(self._store, filter=own)
        reach = reach_of(k, None, sections=steering.sections)
        talk = SelfRouteChain(retriever=self._by_itself(documents, reach), llm=llm, documents=documents, **options)
        yield LangChainSession(chain, texts, talk=talk)

    def _by_itself(self, documents: StoredDocuments, k: int) -> Runnable[Any, list[Document]]:
        """Return a retriever for the chat: it searches for the question as it was reworded from the history."""
        return RunnableLambda(itemgetter("alone")) | self._store.as_retriever(search_kwargs=documents.search_kwargs(k))

    def replay(  # noqa: PLR0913 - what a session needs
        self,
        texts: Sequence[Text],
        *,
        llm: BaseChatModel,
        long_context_llm: BaseChatModel | None,
        k: int,
        steering: Steering,
        retrieved: dict[str, list[str]],
    ) -> LangChainSession:
        """Build a chain for one question, which finds the same passages each time.

        Args:
            texts: The texts.
            llm: The model.
            long_context_llm: The model of the second step; None for the same.
            k: How many passages the draft reads.
            steering: Which questions read more than their passages.
            retrieved: The ids of the passages, by their number; what is not there is looked up and noted.
        """
        documents = StoredDocuments(self._store, filter={"text_key": {"$in": [text.key for text in texts]}})
        reach = reach_of(k, None, sections=steering.sections)
        chain = SelfRouteChain(
            retriever=self._finding(documents, reach, retrieved),
            llm=llm,
            documents=documents,
            long_context_llm=long_context_llm,
            citations=True,
            draft_passages=k,
            **steering.options(),
        )
        return LangChainSession(chain, texts)

    def _finding(
        self, documents: StoredDocuments, k: int, retrieved: dict[str, list[str]]
    ) -> RunnableLambda[str, list[Document]]:
        retriever = self._store.as_retriever(search_kwargs=documents.search_kwargs(k))

        def find(question: str) -> list[Document]:
            if str(k) not in retrieved:
                retrieved[str(k)] = [str(passage.id) for passage in retriever.invoke(question)]
            found = {passage.id: passage for passage in self._store.get_by_ids(retrieved[str(k)])}
            return [found[name] for name in retrieved[str(k)]]

        return RunnableLambda(find)


class LangChainSession:
    """Answers questions by a chain."""

    def __init__(self, chain: SelfRouteChain, texts: Sequence[Text], *, talk: SelfRouteChain | None = None) -> None:
        """Take the chain, the texts that it answers from, and the chain for questions with a history."""
        self.ledger = SelfRouteLedger()
        self.check = chain.check
        self.first_step = chain.first_step.invoke
        self._chain, self._second_step = chain.with_config(callbacks=[self.ledger]), chain.second_step
        self._llm, self._k = chain.llm, chain.draft_passages
        self._talk = talk and talk.with_config(callbacks=[self.ledger])
        self._texts = {text.source: text for text in texts}

    def ask(self, question: str) -> Output:
        """Answer a question."""
        return self._output(self._chain.invoke(question))

    def second_step(self, row: Mapping[str, Any]) -> Output:
        """Answer the question of a row that `first_step` returned."""
        return self._output(self._second_step.invoke(row))

    def stream(self, question: str, show: Show, *, turns: Sequence[Turn] = (), alone: str | None = None) -> Output:
        """Answer a question piece by piece; with a history by the chain that has it in its prompts."""
        output: Any = None
        if turns and self._talk:
            chunks = self._talk.stream(
                {"input": question, "chat_history": _messages(turns), "alone": alone or question}
            )
        else:
            chunks = self._chain.stream(question)
        with closing(cast("Generator[Any, None, None]", chunks)):  # else the model goes on when one leaves
            for chunk in chunks:
                output = chunk if output is None else output + chunk
                show(output["route"], chunk.get("answer", ""))
        return self._output(output)

    def reword(self, question: str, turns: Sequence[Turn]) -> tuple[str, int]:
        """Have the model word a question so that it can be understood without what was said before."""
        prompt = [*_messages(turns), HumanMessage(REWORD + question)]
        alone = StrOutputParser().invoke(self._llm.invoke(prompt)).strip()
        tokens = sum(count_tokens(message.text) for message in prompt) + count_tokens(alone)
        return alone or question, tokens

    def _output(self, output: Mapping[str, Any]) -> Output:
        context = [(document.page_content, document.metadata) for document in output["context"]]
        return Output(
            question=output["input"],
            answer=output["answer"],
            route=output["route"],
            answerable=output["answerable"],
            decision=output["decision"],
            usage=output["usage"],
            retrieved=[str(passage.id) for passage in output["retrieved"][: self._k]],
            read=documents_read(output["route"], context, self._texts),
            citations=in_files(output["citations"], [metadata for _, metadata in context], self._texts),
        )


def _messages(turns: Sequence[Turn]) -> list[BaseMessage]:
    return [message for turn in turns for message in (HumanMessage(turn.question), AIMessage(turn.answer))]
