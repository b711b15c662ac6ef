"""One call of a chain: what performing its effects takes, whether awaited or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from langchain_core.callbacks import (
    AsyncCallbackManagerForChainRun,
    CallbackManagerForChainRun,
)
from langchain_core.documents import Document
from langchain_core.prompt_values import PromptValue
from langchain_core.prompts import format_document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig

from langchain_selfroute import documents, models, structured
from langchain_selfroute.convert import inputs_of, is_too_long
from langchain_selfroute.ledger import entry_recorder
from langchain_selfroute.models import Tally
from langchain_selfroute.stored.reading import ScopedDocuments, StoredDocuments
from selfroute.documents.overflow import read_less
from selfroute.documents.sizes import Lengths
from selfroute.drivers import Flow
from selfroute.flow import Answer, Decided, Generate, ReadDocuments, Retrieve, Route, self_route
from selfroute.prompts import documents_in
from selfroute.usage.account import Account
from selfroute.usage.prices import PricedModel
from selfroute.usage.savings import PromptSize, Window

if TYPE_CHECKING:
    from langchain_selfroute.chain import SelfRouteChain

Manager = TypeVar("Manager", CallbackManagerForChainRun, AsyncCallbackManagerForChainRun)


class Call(Generic[Manager]):
    """One call of a chain: what both ways of performing it share."""

    def __init__(  # noqa: PLR0913
        self,
        chain: SelfRouteChain,
        given: Any,
        *,
        manager: Manager,
        config: RunnableConfig | None,
        kwargs: dict[str, Any],
        streaming: bool,
    ) -> None:
        self.chain, self.kwargs = chain, kwargs
        self.structured = chain.answerability == "structured"
        self.streaming = streaming and not self.structured
        self.manager: Manager = manager
        self.config = _for_children(config) if config else RunnableConfig()
        self.given = given
        self.inputs: dict[str, Any] = {}
        self.refusal = chain.refusal
        self.passages: Sequence[Document] = ()
        self.read: Sequence[Document] = ()  # whole documents, before they were fitted
        self.context: Sequence[Document] = ()
        self.asked = PromptSize(0, 0)  # the last prompt
        self.answered_by = PricedModel()  # the last model
        self.account = Account(entry_recorder(manager.handlers))

    def flow(self) -> Flow:
        """Start: look at the inputs (here, within the run, so that it records what is wrong with them)."""
        self.inputs = inputs_of(self.given)
        return self_route(self.inputs["input"], refusal=self.refusal)

    def is_too_long(self, error: Exception) -> bool:
        """Whether the model refused its prompt as too long."""
        return is_too_long(error)

    def complete_usage(self, answer: Answer) -> None:
        """Complete the usage with what the long context alone would have taken."""
        chain, account = self.chain, self.account
        if not chain.measure_savings:
            return
        lengths, model = self._lengths(), self._model("long_context")
        if answer.route == "rag":
            window = Window(chain.document_budget(), roughly=chain.token_counter is None)
            priced = model if chain.long_context_llm else self.answered_by
            chain.baseline.answered(account, lengths, asked=self.asked, window=window, model=model, priced=priced)
        else:
            trimmed = any(documents.label_of(document).get("trimmed") for document in self.context)
            whole = len(self.read) == len(self.context) and not trimmed
            sizes = lengths() if lengths and whole else None
            account.usage = chain.baseline.read(account.usage, sizes, asked=self.asked, model=model)

    def _begin_counting(self, decided: Decided) -> None:
        stored = isinstance(self.chain.documents, StoredDocuments)
        if stored and decided.route == "rag" and self.streaming and self.chain.measure_savings:
            self._lengths()  # so that they are counted while the answer is poured

    def _lengths(self) -> Lengths | None:
        try:
            source = self._source()
            if isinstance(source, ScopedDocuments):
                return source.lengths(self.passages)
            return documents.lengths(source) if isinstance(source, list) else None
        except Exception:  # noqa: BLE001 - what keeps them from being read is no concern of an answer from the passages
            return None

    def _child(self, name: str, tag: str | None = None) -> RunnableConfig:
        """The config of a child run; what runs it merges it with the context's, so it is given only what differs."""
        manager = self.manager.get_child()
        if tag:
            manager.add_tags([tag])  # inherited: the model may sit inside a retry or a fallback
        return {**self.config, "callbacks": manager, "run_name": name}

    def _query(self, effect: Retrieve) -> Any:
        return effect.question if takes_string(self.chain.retriever) else self.inputs

    def _retrieved(self, found: Any) -> Sequence[Document]:
        self.passages = documents.documents_of(found, "retriever")
        return self.passages

    def _prompt(self, effect: Generate) -> tuple[Runnable[Any, Any], PromptValue, RunnableConfig]:
        self.context, chain = effect.context, self.chain
        if chain.document_prompt is not None:
            context = "\n\n".join([format_document(document, chain.document_prompt) for document in effect.context])
        else:
            texts = [document.page_content for document in effect.context]
            whole = effect.step == "long_context"
            names = [one.metadata.get("title", self._source_of(one)) for one in effect.context] if whole else []
            context = documents_in(texts, names) if whole else "\n\n".join(texts)
        words = {**self.inputs, "context": context, "refusal": self.refusal}
        model = chain.model_of(effect.step)
        template = chain.rag_prompt if effect.step == "rag" else chain.long_context_prompt
        prompt = template.format_prompt(**words)
        if chain.measure_savings:
            schema = structured.schema_length() if self.structured else 0
            self.asked = PromptSize(models.length_of(prompt) + schema, len(context))
        if self.structured:
            model = structured.asking("llm", model)
        return model, prompt, self._child(effect.step, f"selfroute:{effect.step}")

    def _told(self, reply: Any, tally: Tally) -> str:
        if isinstance(reply, structured.StructuredReply):
            return structured.text_of(reply, tally, refusal=self.refusal)
        return tally.add(reply)

    def _source_of(self, document: Document) -> Any:
        key = self.chain.documents.source_key if isinstance(self.chain.documents, StoredDocuments) else "source"
        return document.metadata.get(key)

    def _book(self, step: Route, tally: Tally, prompt: PromptValue) -> None:
        counts = tally.usage(prompt, count=self.chain.count_tokens)
        if counts is None:
            return
        self.answered_by = self._model(step, tally)
        self.account.add_call(step, counts, self.answered_by)
        if tally.whole and tally.counts is None and not tally.left:
            models.say_why_estimated(self.chain.model_of(step), self.config)

    def _model(self, step: Route, tally: Tally | None = None) -> PricedModel:
        """What the model of a step, or the one that answered, is called where it is paid for."""
        said, model = self.chain.priced_model_of(step), self.chain.model_of(step)
        if said:
            return said
        if self.kwargs or "configurable" in self.config:  # by which it may be another one for each call
            name = models.name_of(model, self.config, self.kwargs)
        else:
            name = self.chain.names.of(step, model)
        return tally.model(name) if tally else name

    def _reading(self, effect: ReadDocuments) -> dict[str, Any]:
        asked = {"input": self.inputs["input"], "retrieved": len(effect.passages)}
        return asked if effect.too_long is None else {**asked, "too_long": str(effect.too_long)[:500]}

    def _given(self) -> dict[str, Any]:
        return {**self.inputs, "retrieved": list(self.passages)}

    def _source(self) -> documents.Source:
        source = self.chain.documents
        if isinstance(source, StoredDocuments):
            return source.behind(self.chain.retriever, self.config)
        return source

    def _fits(self) -> bool:
        """Whether the documents fit as they are, as far as that can be told in no time."""
        budget = self.chain.document_budget()
        if budget is None:
            return True
        return not self.chain.token_counter and sum(len(document.page_content) for document in self.read) < 4 * budget

    def _fit(self, effect: ReadDocuments) -> list[Document]:
        count = self.chain.count_tokens
        if effect.too_long is None:
            budget = self.chain.document_budget()
        else:
            budget = read_less(effect.too_long, sent=sum(count(document.page_content) for document in self.context))
        return documents.fitted(self.read, retrieved=self.passages, budget=budget, count=count)

    def _summary(self, taken: Sequence[Document]) -> dict[str, Any]:
        """What the run of `read_documents` records: no text."""
        return {
            "documents": [
                {
                    "source": str(self._source_of(document) or ""),
                    "characters": len(document.page_content),
                    **documents.label_of(document),
                }
                for document in taken
            ]
        }

    def head(self, route: Route, text: str) -> dict[str, Any]:
        """The first chunk of a stream: all that is known when the first text comes."""
        return {
            **self.inputs,
            "retrieved": list(self.passages),
            "context": list(self.context),
            "route": route,
            "answer": text,
        }

    def rest(self, answer: Answer) -> dict[str, Any]:
        """The last chunk of a stream."""
        return {
            "answerable": answer.answerable,
            "decision": answer.decision.as_dict(),
            "usage": self.account.usage.as_dict(),
        }

    def whole(self, answer: Answer) -> dict[str, Any]:
        """The output of a call that does not stream: the sum of the chunks."""
        return {**self.head(answer.route, answer.text), **self.rest(answer)}


def _for_children(config: RunnableConfig) -> RunnableConfig:
    """The config without what the chain's own run took of it."""
    rest = {key: value for key, value in config.items() if key not in ("run_name", "run_id")}
    return cast("RunnableConfig", rest)


def takes_string(retriever: Runnable[Any, Any]) -> bool:
    """Whether a retriever is asked with the bare question; any other runnable gets all inputs."""
    if isinstance(retriever, BaseRetriever):
        return True
    try:
        return retriever.InputType in (str, "str")  # a name where annotations are postponed
    except (TypeError, AttributeError):  # a runnable that can not tell
        return False
