"""Find the searches that a retriever makes, inside LangChain's own wrappers around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, TypeGuard

from langchain_core.language_models import BaseLanguageModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import (
    RunnableBinding,
    RunnableBranch,
    RunnableConfig,
    RunnableSequence,
)
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever

from langchain_selfroute import known
from langchain_selfroute.convert import config_within
from langchain_selfroute.internals import is_retry
from langchain_selfroute.stored.originals import Originals
from selfroute.documents.access import is_one_of, name_of

_SEARCHING = ("_get_relevant_documents", "_aget_relevant_documents", "invoke", "ainvoke")
Config = RunnableConfig | None
_Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """A search of a vector store.

    Attributes:
        vectorstore: The store.
        arguments: The arguments of the search, apart from the question.
        originals: What the retriever returns in place of the chunks that it finds, if it does.
        certain: Whether nothing but the arguments hides chunks. Otherwise what they hide is hidden, and maybe more.
    """

    vectorstore: VectorStore
    arguments: _Arguments
    originals: Originals | None = None
    certain: bool = True

    def filter(self, name: str) -> Any:
        """Return the filter among the arguments, by its name; None if it hides nothing."""
        condition = self.arguments.get(name)
        return None if is_empty(condition) else condition


def is_empty(condition: Any) -> bool:
    """Return whether a filter hides nothing."""
    return condition is None or (isinstance(condition, Mapping) and not condition)


def searches_of(retriever: Any, config: Config, given: _Arguments | None = None) -> tuple[Search, ...] | None:
    """Find the searches that a retriever makes, which let through what it may return; some of them may hide more.

    Args:
        retriever: The retriever.
        config: The config that it is called with; None if that is unknown.
        given: The arguments that it is called with.

    Returns:
        The searches; none if it only looks through documents in memory; None if its type is unknown.
    """
    given = given or {}
    while not isinstance(retriever, BaseRetriever):
        if isinstance(retriever, DynamicRunnable) and config is not None:
            retriever, config = retriever.prepare(config)
        elif type(retriever) is RunnableBinding or is_retry(retriever):
            given = {**retriever.kwargs, **given}
            retriever, config = retriever.bound, config if config is None else config_within(retriever, config)
        elif type(retriever) is RunnableSequence:  # the steps before only transform the question
            retriever, given = retriever.last, {}
        elif type(retriever) is RunnableBranch:  # as `create_history_aware_retriever` makes one
            return _together(
                [
                    searches_of(one, config, given)
                    for one in (retriever.default, *(one for _, one in retriever.branches))
                ]
            )
        else:
            return None
    if is_plain(retriever):
        return (Search(retriever.vectorstore, {**retriever.search_kwargs, **given}),)
    kind = KINDS.get(name_of(type(retriever)))
    return kind.searches(retriever, config, given) if kind else None


def is_plain(retriever: Any) -> TypeGuard[VectorStoreRetriever]:
    """Return whether a retriever has LangChain's own search; a subclass with another one may hide more."""
    kind, own = type(retriever), VectorStoreRetriever
    return kind is own or (
        issubclass(kind, own) and all(getattr(kind, name) is getattr(own, name) for name in _SEARCHING)
    )


def _only_drops(compressor: Any) -> bool:
    """Return whether a compressor is known to drop only what is irrelevant."""
    if is_one_of(compressor, {known.PIPELINE}):
        return all(map(_only_drops, compressor.transformers))
    return is_one_of(compressor, known.BY_RELEVANCE)


def _by_own_filter(retriever: Any) -> tuple[Search, ...]:
    """Return the search of a `SelfQueryRetriever`.

    A filter that a model writes belongs to the question. But a translator or a chain of the user's own may add one that
    hides something.
    """
    asks = _unbound(retriever.query_constructor)
    steps = map(_unbound, asks.steps) if type(asks) is RunnableSequence else [asks]
    certain = is_one_of(retriever.structured_query_translator, known.TRANSLATORS) and all(map(_is_known_step, steps))
    return (Search(retriever.vectorstore, retriever.search_kwargs, certain=certain),)


def _is_known_step(step: Any) -> bool:
    """Return whether a step only asks a model for a filter, or parses its reply."""
    if is_one_of(step, known.QUERY_PARSERS):
        parse = step.ast_parse
        return name_of(parse) in known.FILTER_PARSERS or (name_of(parse) == known.LARK and _only_reads(parse.__self__))
    return isinstance(step, BaseLanguageModel) or is_one_of(step, known.QUERY_PROMPTS)


def _only_reads(lark: Any) -> bool:
    return is_one_of(getattr(getattr(lark, "options", None), "transformer", None), known.FILTER_TRANSFORMERS)


def _unbound(step: Any) -> Any:
    while type(step) is RunnableBinding:
        step = step.bound
    return step


def _one(retriever: Any) -> tuple[Search, ...]:
    return (Search(retriever.vectorstore, retriever.search_kwargs),)


def _returning_originals(retriever: Any) -> tuple[Search, ...]:
    originals = Originals(retriever.docstore, retriever.id_key)
    return (Search(retriever.vectorstore, retriever.search_kwargs, originals),)


def _together(found: Sequence[tuple[Search, ...] | None]) -> tuple[Search, ...] | None:
    """Return the searches of several retrievers; None if those of one are not known."""
    return None if None in found else tuple(chain.from_iterable(filter(None, found)))


def _in_memory(_: Any) -> tuple[Search, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of LangChain's own retrievers.

    Attributes:
        own: Returns the searches of one that asks no other retriever: it has `search_kwargs`, or searches in memory.
        inside: The field that holds those that one asks.
        hands_on: Whether one hands its config on to these.
        compressor: The field that holds what drops a part of what these find. Then one hands on its arguments, too.
    """

    own: Callable[[Any], tuple[Search, ...]] = _one
    inside: str = ""
    hands_on: bool = False
    compressor: str = ""

    def within(self, config: Config) -> Config:
        """Return the config that reaches those that one asks."""
        return config if self.hands_on else None

    def searches(self, retriever: Any, config: Config, given: _Arguments) -> tuple[Search, ...] | None:
        """Return the searches of one; None if they are not known."""
        if given and not self.compressor:  # it ignores them
            return None
        if not self.inside:
            return self.own(retriever)
        held = getattr(retriever, self.inside)
        searches = _together(
            [searches_of(one, self.within(config), given) for one in (held if isinstance(held, list) else [held])]
        )
        if searches and self.compressor and not _only_drops(getattr(retriever, self.compressor)):
            return tuple(replace(search, certain=False) for search in searches)
        return searches


KINDS: Mapping[str, _Kind] = {
    f"langchain_{name}": kind
    for name, kind in {
        "classic.retrievers.ensemble.EnsembleRetriever": _Kind(inside="retrievers", hands_on=True),
        "classic.retrievers.merger_retriever.MergerRetriever": _Kind(inside="retrievers"),
        "classic.retrievers.multi_query.MultiQueryRetriever": _Kind(inside="retriever"),
        "classic.retrievers.re_phraser.RePhraseQueryRetriever": _Kind(inside="retriever"),
        "classic.retrievers.contextual_compression.ContextualCompressionRetriever": _Kind(
            inside="base_retriever", compressor="base_compressor"
        ),
        "classic.retrievers.self_query.base.SelfQueryRetriever": _Kind(_by_own_filter),
        "classic.retrievers.time_weighted_retriever.TimeWeightedVectorStoreRetriever": _Kind(),
        "classic.retrievers.multi_vector.MultiVectorRetriever": _Kind(_returning_originals),
        "classic.retrievers.parent_document_retriever.ParentDocumentRetriever": _Kind(_returning_originals),
        "community.retrievers.bm25.BM25Retriever": _Kind(_in_memory),
        "community.retrievers.tfidf.TFIDFRetriever": _Kind(_in_memory),
    }.items()
}
"""How to see through LangChain's own retrievers, by the full names of their classes; subclasses are unknown."""
