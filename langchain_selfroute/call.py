"""One call of a chain: what the sync and the async steps have in common."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar, cast

from langchain_core.callbacks import (
    AsyncCallbackManagerForChainRun,
    BaseCallbackManager,
    CallbackManagerForChainRun,
)
from langchain_core.documents import Document
from langchain_core.prompt_values import PromptValue
from langchain_core.prompts import format_document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from typing_extensions import override

from langchain_selfroute import caching, convert, documents, models, prompting, structured
from langchain_selfroute.convert import inputs_of, is_too_long
from langchain_selfroute.fallbacks import TooLongHeard, has_fallbacks
from langchain_selfroute.host import span_of
from langchain_selfroute.ledger import entry_recorder
from langchain_selfroute.models import MessageTally
from langchain_selfroute.parts import Parts
from langchain_selfroute.stored import StoredDocuments
from langchain_selfroute.stored.dropping import FoundHeard
from langchain_selfroute.stored.searches import fixed
from selfroute.caching.prefixes import Prefix
from selfroute.caching.providers import Dialect
from selfroute.documents.chunks import Place
from selfroute.documents.stored import ScopedDocuments
from selfroute.effects import Answer, Decided, Generate, ReadDocuments, Route
from selfroute.performing import BaseSteps, check_question
from selfroute.prompts import documents_in, in_prompt
from selfroute.two_steps import cited_in
from selfroute.usage.addresses import account_of
from selfroute.usage.prices import PricedModel

Asked: TypeAlias = "tuple[Runnable[Any, Any], PromptValue, RunnableConfig, dict[str, Any]]"
"""The model, its prompt, its config and its options."""
Words: TypeAlias = Mapping[str, Any]
Config: TypeAlias = Callable[[], RunnableConfig]
Manager = TypeVar("Manager", CallbackManagerForChainRun, AsyncCallbackManagerForChainRun)


class Call(BaseSteps[Document], Generic[Manager]):
    """One call of a chain: what `Steps` and `AsyncSteps` have in common."""

    def __init__(  # noqa: PLR0913
        self,
        parts: Parts,
        given: Any,
        *,
        manager: Manager,
        config: RunnableConfig | None,
        kwargs: dict[str, Any],
        streaming: bool,
    ) -> None:
        record = entry_recorder(manager.handlers)
        super().__init__(parts.settings, memory=parts.memory, record=record, parent_span=partial(span_of, manager))
        self.parts, self.kwargs = parts, kwargs
        self.streaming = streaming and not parts.settings.structured
        self.manager: Manager = manager
        self.config = _for_children(config) if config else RunnableConfig()
        self.given = given
        self.reading: RunnableConfig | None = None  # of the run that reads documents
        self.inputs: dict[str, Any] = {}
        self.retriever = parts.retriever
        self._wall: Any = None  # the documents within it, or why there are none
        self._found: FoundHeard | None = None  # within a retriever that we do not know
        self._heard = TooLongHeard()  # within the latest call of a model

    def begin(self) -> Any:
        """Check the inputs; return the first step, or what says which it is."""
        self.inputs = inputs_of(self.given)
        check_question(self.question)
        if len(self.inputs) > 1:
            prompting.check_messages(self.parts.prompts.values(), self.inputs)
        self._fix_wall(self.parts.documents)
        if self.first_only:
            self._inputs_as_json()  # what cannot be kept in a row is refused before anything is paid for
        return self.start

    def _fix_wall(self, source: Any) -> None:
        """Have the question retrieve and read as the retriever is configured now, whatever is changed later."""
        stored = isinstance(source, StoredDocuments)
        try:
            if stored:
                self.retriever = fixed(self.parts.retriever, self.config)
                self._wall = source.behind(self.retriever, self.config)
        except Exception as error:  # noqa: BLE001 - an answer from passages needs no documents
            self._wall = error

    @property
    @override
    def _inputs(self) -> Mapping[str, Any]:
        return self.inputs

    @override
    def _place_of(self, passage: Document) -> Place:
        start = passage.metadata.get("start_index")
        return Place(self._source_name(passage), start, passage.metadata)

    @property
    @override
    def question(self) -> str:
        return cast("str", self.inputs["input"])

    @override
    def is_too_long(self, error: Exception) -> bool:
        return is_too_long(error) or self._heard.error is not None

    @override
    def _text_of(self, document: Document) -> str:
        return document.page_content

    @override
    def _trimmed(self, document: Document, text: str, /, **label: Any) -> Document:
        return documents.labelled(document, text, **label)

    @property
    @override
    def _one_model(self) -> bool:
        return self.parts.one_model

    @override
    def _window(self, step: Route) -> int | None:
        return models.window_of(self.parts.models[step], self.config)

    @override
    def _text_with(self, step: Route, context: Sequence[Document]) -> str:
        prompt, words = self._latest(step, context, lambda: self._fill_in(step, context))
        if prompt is None:  # it is not known before the step
            return "\n".join(map(str, words.values()))
        return models.text_of_prompt(prompt)

    @override
    def _wording(self, step: Route) -> str | None:
        prompt, _ = self._fill_in(step, ())
        return None if prompt is None else models.text_of_prompt(prompt)

    @override
    def _source(self) -> Any:
        if isinstance(self._wall, Exception):
            raise self._wall
        return self._wall or self.parts.documents

    @override
    def _model_name(self, step: Route) -> PricedModel:
        model = self.parts.models[step]
        if self.kwargs or self.config.get("configurable"):  # these may select another model for each call
            return models.name_of(model, self.config, self.kwargs)
        return self._memory.names.of(step, model)

    @override
    def _prefix(self, effect: Generate) -> Prefix | None:
        step, context = effect.step, effect.context
        prompt, words = self._latest(step, context, lambda: self._fill_in(step, context))
        if prompt is None:  # it is not known before the step
            return None
        return caching.prefix_of(prompt, context=words["context"], question=self.question)

    @override
    def _takes_marks(self, step: Route, dialect: Dialect) -> bool:
        return caching.takes_marks(self.parts.models[step], dialect, self.config, self.kwargs)

    @override
    def _account(self, step: Route) -> Hashable:
        inside, _ = models.inside_of(self.parts.models[step], self.config)
        return account_of(inside)

    @override
    def _log_missing_usage(self, step: Route) -> None:
        models.log_missing_usage(self.parts.models[step], self.config, self._memory.said)

    def _child(self, name: str, tag: str | None = None) -> RunnableConfig:
        """Return the config of a child run; LangChain merges it with the context's, so it holds only differences."""
        manager = self.manager.get_child()
        if tag:
            manager.add_tags([tag])  # inherited: the model may be within a retry or a fallback
        return {**self.config, "callbacks": manager, "run_name": name}

    def _retrieving(self) -> tuple[Any, RunnableConfig]:
        """Return what the retriever is called with.

        Its config has a listener to what is found, if the retriever may drop some of it for any reason.
        """
        config = self._child("retrieve")
        if isinstance(self._wall, ScopedDocuments) and self._wall.doubted:
            self._found = FoundHeard(self._wall)
            cast("BaseCallbackManager", config["callbacks"]).add_handler(self._found)
        return (self.question if takes_string(self.retriever) else self.inputs), config

    def _retrieved(self, found: Any) -> ReadDocuments:
        """Keep the passages, and note which of those found were dropped; return the effect of fitting them."""
        passages = documents.documents_of(found, "retriever")
        if self._found:
            self._wall.note_dropped(self._found.found, passages)
        return self._found_passages(passages)

    def _reading_config(self) -> RunnableConfig:
        """Return the config for reading documents; a policy may read them before the step that answers from them."""
        return self.reading or self._child("read_documents")

    def _prompt(self, effect: Generate) -> Asked:
        template, prompt, words, config = self._to_send(effect)
        prompt = prompt or prompting.formatted(template, words, config())
        return self._asked(effect.step, prompt, words)

    async def _aprompt(self, effect: Generate) -> Asked:
        template, prompt, words, config = self._to_send(effect)
        prompt = prompt or await prompting.aformatted(template, words, config())
        return self._asked(effect.step, prompt, words)

    def _to_send(self, effect: Generate) -> tuple[Runnable[Any, Any], PromptValue | None, Words, Config]:
        self.context, step = effect.context, effect.step
        prompt, words = self._latest(step, effect.context, lambda: self._fill_in(step, effect.context))
        return self.parts.prompts[step], prompt, words, lambda: self._child(f"{step}_prompt")

    def _fill_in(self, step: Route, context: Sequence[Document]) -> tuple[PromptValue | None, Words]:
        """Return a step's prompt with a context, None if it is a runnable that has to be called; and its variables."""
        words = {**self.inputs, "context": self._context_text(step, context), "refusal": self.refusal}
        return prompting.filled_in(self.parts.prompts[step], words, self.config), words

    def _asked(self, step: Route, prompt: PromptValue, words: Words) -> Asked:
        model, context = self.parts.models[step], words["context"]
        schema = 0
        if self.settings.structured:
            form = self.settings.form_of(step)
            model, schema = structured.asking("llm", model, self.config, form=form), structured.length_of(form)
        self._note_prompt(lambda: models.length_of(prompt) + schema, context=len(context))
        config = self._listening(self._child(step, f"selfroute:{step}"), self.parts.models[step])
        prompt, options = self._marked(step, prompt, context)
        return model, prompt, config, options

    def _marked(self, step: Route, prompt: PromptValue, context: str) -> tuple[PromptValue, dict[str, Any]]:
        """Return a prompt as it is sent, and the options of the call, so that the provider's prompt cache is hit."""
        cache = self._cache(step)
        if cache is None or cache.mark is None:
            return prompt, self.kwargs
        prefix = caching.prefix_of(prompt, context=context, question=self.question)
        if prefix is None:
            return prompt, self.kwargs
        if step == "long_context":
            own = caching.set_by_user(self.parts.models[step], self.config, self.kwargs)
            options = caching.options_for_marked(prefix, cache, self.kwargs, own=own)
            return caching.marked(prompt, prefix, cache), options
        return prompt, caching.options_for_unmarked(prefix, cache, self.kwargs)

    def _listening(self, config: RunnableConfig, model: Runnable[Any, Any]) -> RunnableConfig:
        """Return the config with a listener to the errors of fallbacks, if the model has some."""
        self._heard = TooLongHeard()
        if has_fallbacks(model, self.config):
            cast("BaseCallbackManager", config["callbacks"]).add_handler(self._heard)
        return config

    def _named(self, effect: ReadDocuments) -> ReadDocuments:
        """Return the effect with the error that says what is too long, where `with_fallbacks` raised another one."""
        raised, heard = effect.too_long, self._heard.error
        return replace(effect, too_long=heard) if raised and heard and not is_too_long(raised) else effect

    def _context_text(self, step: Route, context: Sequence[Document]) -> str:
        context = self._as_sent(step, context, stored=isinstance(self.parts.documents, StoredDocuments))
        template = self.parts.document_prompt
        if template is not None:
            return "\n\n".join([format_document(_shown(document), template) for document in context])
        texts = [document.page_content for document in context]
        if step == "rag":
            return "\n\n".join(texts)
        return documents_in(texts, [one.metadata.get("title", self._source_name(one)) for one in context])

    def _tallied(self, step: Route, reply: Any, tally: MessageTally) -> str:
        if self.settings.structured:
            return structured.text_of(reply, tally, refusal=self.refusal, form=self.settings.form_of(step))
        return tally.add(reply)

    @override
    def _source_name(self, document: Document) -> Any:
        key = self.parts.documents.source_key if isinstance(self.parts.documents, StoredDocuments) else "source"
        return document.metadata.get(key)

    @override
    def _document_as_json(self, document: Document) -> dict[str, Any]:
        return convert.document_as_json(document)

    @override
    def _inputs_as_json(self) -> dict[str, Any]:
        return convert.inputs_as_json(self.inputs)

    def _reading(self, effect: ReadDocuments) -> dict[str, Any]:
        """Return what the run of `read_documents` records as its inputs, which includes no text of passages."""
        inputs = {"input": self.question, "retrieved": len(effect.passages)}
        return inputs if effect.too_long is None else {**inputs, "too_long": str(effect.too_long)[:500]}

    def _given(self) -> dict[str, Any]:
        return {**self.inputs, "retrieved": list(self.passages)}

    def _summary(self, context: Sequence[Document]) -> dict[str, Any]:
        """Return what the run of `read_documents` records as its outputs, which includes no text."""
        return {
            "documents": [
                {
                    "source": str(self._source_name(document) or ""),
                    "characters": len(document.page_content),
                    **documents.label_of(document),
                }
                for document in context
            ]
        }

    def head(self, decided: Decided | Answer, text: str) -> dict[str, Any]:
        """Return the first chunk of a stream: everything that is known when the first text comes."""
        return {
            **self.inputs,
            "retrieved": list(self.passages),
            "context": list(self.context),
            "route": decided.route,
            "answer": text,
        }

    def rest(self, answer: Answer) -> dict[str, Any]:
        """Return the last chunk of a stream."""
        return {
            "answerable": answer.answerable,
            "finish_reason": answer.finish_reason,
            "decision": answer.decision.as_dict(),
            "usage": self.account.as_dict(),
            **cited_in(answer, self.settings),
        }

    def whole(self, answer: Answer) -> dict[str, Any]:
        """Return the output of a call that does not stream, which equals the sum of a stream's chunks."""
        return {**self.head(answer, answer.text), **self.rest(answer)}


def _for_children(config: RunnableConfig) -> RunnableConfig:
    """Return the config without the keys that belong to the chain's own run."""
    rest = {key: value for key, value in config.items() if key not in ("run_name", "run_id")}
    return cast("RunnableConfig", rest)


def _shown(document: Document) -> Document:
    """Return a document with its metadata as a prompt may show them."""
    metadata = in_prompt(document.metadata)
    return document if metadata is document.metadata else Document(document.page_content, metadata=dict(metadata))


def takes_string(retriever: Runnable[Any, Any]) -> bool:
    """Return whether a retriever takes the question as a string; other runnables get all inputs."""
    if isinstance(retriever, BaseRetriever):
        return True
    try:
        return retriever.InputType in (str, "str")  # a name, if annotations are postponed
    except (TypeError, AttributeError):  # the runnable does not declare its input
        return False
