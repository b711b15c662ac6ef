"""Find the searches of vector stores behind a retriever, through whatever LangChain wraps around them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.prompts import BasePromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableBinding, RunnableConfig, RunnableSequence
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever

from langchain_selfroute.convert import config_within
from langchain_selfroute.host import is_retry
from langchain_selfroute.stored.originals import Originals

_PACKAGES = frozenset({"langchain", "langchain_classic", "langchain_community"})
_OWN = ("_get_relevant_documents", "_aget_relevant_documents", "invoke", "ainvoke")
_Config = RunnableConfig | None
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


def searches_of(
    retriever: Runnable[Any, Any], config: _Config, given: _Arguments | None = None
) -> tuple[Search, ...] | None:
    """Find the searches that a retriever makes: what they let through it may return, as far as they are certain.

    Args:
        retriever: The retriever.
        config: The config that it is called with; None if that is unknown.
        given: The arguments that it is called with.

    Returns:
        The searches; none if it only looks through documents in memory; None if it cannot be seen what it does.
    """
    given = given or {}
    while not isinstance(retriever, BaseRetriever):
        if isinstance(retriever, DynamicRunnable) and config is not None:
            retriever, config = retriever.prepare(config)
        elif type(retriever) is RunnableBinding or is_retry(retriever):
            bound: Any = retriever
            given = {**bound.kwargs, **given}
            retriever, config = bound.bound, config if config is None else config_within(bound, config)
        elif type(retriever) is RunnableSequence:  # the steps before only transform the question
            retriever, given = retriever.last, {}
        else:
            return None
    if isinstance(retriever, VectorStoreRetriever):
        # A subclass with a search of its own may hide more.
        plain = all(getattr(type(retriever), name) is getattr(VectorStoreRetriever, name) for name in _OWN)
        return (Search(retriever.vectorstore, {**retriever.search_kwargs, **given}),) if plain else None
    kind = type(retriever)
    see = _KINDS.get(kind.__name__) if _package_of(kind) in _PACKAGES else None
    return see(retriever, config, given) if see else None


def _each(retrievers: Iterable[Runnable[Any, Any]], config: _Config, given: _Arguments) -> tuple[Search, ...] | None:
    """Return the searches of the retrievers whose findings a wrapper puts together."""
    if given:  # the wrapper ignores them
        return None
    found = [searches_of(retriever, config) for retriever in retrievers]
    known = [searches for searches in found if searches is not None]
    return tuple(chain.from_iterable(known)) if len(known) == len(found) else None


def _compressed(retriever: Any, _: _Config, given: _Arguments) -> tuple[Search, ...] | None:
    found = searches_of(retriever.base_retriever, None, given)
    known = _only_drops(retriever.base_compressor)
    return found if known or found is None else tuple(replace(search, certain=False) for search in found)


def _only_drops(compressor: Any) -> bool:
    """Return whether a compressor drops only what is irrelevant, as those of LangChain and its partners do."""
    parts = compressor.transformers if type(compressor).__name__ == "DocumentCompressorPipeline" else ()
    return _is_langchains(compressor) and all(map(_only_drops, parts))


def _by_own_filter(retriever: Any, _: _Config, given: _Arguments) -> tuple[Search, ...] | None:
    """Return the search of a `SelfQueryRetriever`.

    A filter that a model writes belongs to the question. But a translator or a chain of the user's own may add one that
    hides something.
    """
    if given:  # it ignores them
        return None
    asks = _unbound(retriever.query_constructor)
    steps = map(_unbound, asks.steps) if type(asks) is RunnableSequence else [asks]
    certain = _is_langchains(retriever.structured_query_translator) and all(map(_is_known_step, steps))
    return (Search(retriever.vectorstore, retriever.search_kwargs, certain=certain),)


def _is_known_step(step: Any) -> bool:
    """Return whether a step only asks a model for a filter, or parses its reply."""
    parse = getattr(step, "ast_parse", None)
    known = isinstance(step, BasePromptTemplate) or _is_langchains(parse) or _package_of(parse) == "lark"
    return isinstance(step, BaseLanguageModel) or (known and _is_langchains(step))


def _unbound(step: Any) -> Any:
    while type(step) is RunnableBinding:
        step = step.bound
    return step


def _one(retriever: Any, _: _Config, given: _Arguments) -> tuple[Search, ...] | None:
    return None if given else (Search(retriever.vectorstore, retriever.search_kwargs),)


def _returning_originals(retriever: Any, _: _Config, given: _Arguments) -> tuple[Search, ...] | None:
    originals = Originals(retriever.docstore, retriever.id_key)
    return None if given else (Search(retriever.vectorstore, retriever.search_kwargs, originals),)


def _in_memory(_retriever: Any, _config: _Config, given: _Arguments) -> tuple[Search, ...] | None:
    return None if given else ()


def _is_langchains(part: Any) -> bool:
    return _package_of(part).startswith("langchain_") or _package_of(part) == "langchain"


def _package_of(part: Any) -> str:
    """Return the top-level package of a class or a function, or of an object's class."""
    return str(getattr(part, "__module__", "")).partition(".")[0]


# Only `EnsembleRetriever` hands the config on, so within the others it is unknown.
_KINDS: Mapping[str, Callable[[Any, _Config, _Arguments], tuple[Search, ...] | None]] = {
    "EnsembleRetriever": lambda retriever, config, given: _each(retriever.retrievers, config, given),
    "MergerRetriever": lambda retriever, _, given: _each(retriever.retrievers, None, given),
    "MultiQueryRetriever": lambda retriever, _, given: _each([retriever.retriever], None, given),
    "RePhraseQueryRetriever": lambda retriever, _, given: _each([retriever.retriever], None, given),
    "ContextualCompressionRetriever": _compressed,
    "SelfQueryRetriever": _by_own_filter,
    "TimeWeightedVectorStoreRetriever": _one,
    "MultiVectorRetriever": _returning_originals,
    "ParentDocumentRetriever": _returning_originals,
    "BM25Retriever": _in_memory,
    "TFIDFRetriever": _in_memory,
}
"""How to see through LangChain's own retrievers, by the names of their classes; subclasses are unknown."""
