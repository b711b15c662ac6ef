"""Parts are known by their exact class, and a filter is kept as it was."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from functools import reduce
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import BaseDocumentCompressor, BaseDocumentTransformer
from langchain_core.structured_query import Visitor
from llama_index.core import postprocessor as host_postprocessors
from llama_index.core.indices.query.query_transform.base import BaseQueryTransform
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from pydantic import BaseModel

import langchain_selfroute.known as in_langchain
import llamaindex_selfroute.known as in_llamaindex
from golden import golden
from selfroute.documents.access import RetrievedChunk, VisibilityCheck, frozen, is_one_of, is_same, name_of, visible
from selfroute.documents.chunks import differing_keys, is_same_value, shared_items
from selfroute.errors import ConfigurationError

KNOWN: Mapping[str, tuple[frozenset[str], Any]] = {
    "compressors": (in_langchain.BY_RELEVANCE, (BaseDocumentCompressor, BaseDocumentTransformer)),
    "translators": (in_langchain.TRANSLATORS, Visitor),
    "prompts": (in_langchain.QUERY_PROMPTS, BaseModel),
    "parsers": (in_langchain.QUERY_PARSERS, BaseModel),
    "transformers of filters": (in_langchain.FILTER_TRANSFORMERS, object),
    "postprocessors": (in_llamaindex.BY_RELEVANCE | in_llamaindex.REPLACING, BaseNodePostprocessor),
    "retrievers": (in_llamaindex.UNFILTERED | in_llamaindex.WORDS, BaseRetriever),
    "transforms": (in_llamaindex.TRANSFORMS, BaseQueryTransform),
}
ALWAYS_THERE = ("langchain_classic.", "langchain_core.", "langchain_text_splitters.", "llama_index.core.", "selfroute.")
DOUBTED = {  # of LlamaIndex's own: they choose by words, dates or neighbours, or mask
    *("KeywordNodePostprocessor", "PrevNextNodePostprocessor", "AutoPrevNextNodePostprocessor"),
    *("FixedRecencyPostprocessor", "EmbeddingRecencyPostprocessor", "TimeWeightedPostprocessor"),
    *("PIINodePostprocessor", "NERPIINodePostprocessor", "MetadataReplacementPostProcessor"),
}


@pytest.mark.parametrize("which", KNOWN)
def test_known_names_are_classes_of_their_kind(which: str) -> None:
    """Or a slip would make a part doubted, unseen."""
    if which == "transformers of filters":
        pytest.importorskip("lark")  # without it, LangChain has a function in place of the class
    names, kinds = KNOWN[which]
    for name in sorted(names):
        module, _, last = name.rpartition(".")
        if not name.startswith(ALWAYS_THERE) and find_spec(module.partition(".")[0]) is None:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # some modules of the hosts use what is deprecated
                found = getattr(import_module(module), last)
        except ModuleNotFoundError:  # an integration of LlamaIndex that is not installed
            assert not name.startswith(ALWAYS_THERE), name
            continue
        assert issubclass(found, kinds)
        assert name_of(found) == name


def test_known_names_are_documented() -> None:
    listed = (Path(__file__).parents[2] / "docs" / "documents.md").read_text("utf-8")
    known = in_langchain.BY_RELEVANCE | in_llamaindex.BY_RELEVANCE
    spelled = {name for name in known if not name.startswith(("langchain_text_splitters.", "selfroute."))}
    names = {name.rpartition(".")[2] for name in spelled}
    assert {name for name in names if f"`{name}`" not in listed} == {"AWSBedrockRerank"}  # as older versions call it


def test_known_postprocessors_of_llamaindex() -> None:
    kinds = {kind for kind in vars(host_postprocessors).values() if isinstance(kind, type)}
    own = {kind for kind in kinds if issubclass(kind, BaseNodePostprocessor)}
    assert {kind.__name__ for kind in own if name_of(kind) not in in_llamaindex.BY_RELEVANCE} == DOUBTED


def test_is_one_of_no_subclass_or_namesake() -> None:
    class Filters(MetadataFilters):
        pass

    namesake = type("MetadataFilters", (), {})
    known = {name_of(MetadataFilters)}
    assert is_one_of(MetadataFilters(filters=[]), known)
    assert not any(is_one_of(one, known) for one in (Filters(filters=[]), namesake(), MetadataFilters))


PLAIN: list[Any] = [
    None,
    "tenant == 'a'",
    {"tenant": "a"},
    {"$and": [{"tenant": {"$in": ["a", "b"]}}]},
    [{"term": {"tenant": "a"}}],
    MetadataFilters(filters=[MetadataFilter(key="tenant", value="a")]),
]


@pytest.mark.parametrize("one", PLAIN)
def test_frozen_filters_are_copied(one: Any) -> None:
    kept = frozen(one)
    assert is_same(kept, one)
    assert type(kept) is type(one)
    if isinstance(one, MetadataFilters):
        assert kept.filters[0] is not one.filters[0]
    elif isinstance(one, list | dict):
        assert kept is not one
        assert frozen({"filter": one})["filter"] is not one


class _Expression:
    """Makes another filter out of a comparison."""

    def __eq__(self, other: object) -> Any:
        return _Expression()

    __hash__ = None  # type: ignore[assignment]


class _Connected:
    """Cannot be copied."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __deepcopy__(self, _: Any) -> Any:
        msg = "connected"
        raise TypeError(msg)


@pytest.mark.parametrize("one", [lambda document: True, _Expression(), _Connected(), object(), sys])
def test_frozen_keeps_what_cannot_be_copied(one: Any) -> None:
    assert frozen(one) is one


# Values of metadata

ALIKE: list[tuple[Any, Any]] = [
    (True, True),
    (1, 1),
    ("a", "a"),
    (None, None),
    ([1, "a"], [1, "a"]),
    ({"a": [1]}, {"a": [1]}),
    (float("nan"), float("nan")),
]
APART: list[tuple[Any, Any]] = [
    (True, 1),
    (0, False),
    (1, 1.0),
    (0.0, -0.0),
    (["a"], ("a",)),
    ([1], [True]),
    ({"a": 1}, {"a": 1.0}),
    ({"a": {"b": [0]}}, {"a": {"b": [False]}}),
    ({"a": 1}, {"a": 1, "b": 2}),
    ("a", "a\u200b"),
    ("\u00e9", "e\u0301"),
    (None, "None"),
    ("1", 1),
]


@pytest.mark.parametrize(("one", "other", "same"), [(*p, True) for p in ALIKE] + [(*p, False) for p in APART])
def test_wall_tells_values_of_other_types(one: Any, other: Any, same: bool) -> None:
    assert is_same_value(one, other) is is_same_value(other, one) is same
    passages = [RetrievedChunk(frozenset(), "Tea was served.", {"acl": one})]
    seen = VisibilityCheck("doc", passages, ignored_keys=frozenset(), advice="say what is hidden")
    seen.check_chunk({"acl": one})
    with nullcontext() if same else pytest.raises(ConfigurationError, match="differs from the retrieved passages"):
        seen.check_chunk({"acl": other})
    assert (shared_items({"acl": one}, {"acl": other}) == {}) is not same


@golden("differing_keys")
def test_differing_keys(case: dict[str, Any]) -> None:
    found = differing_keys(case["chunk"], case["passages"], ignored_keys={"page", "chunk"})
    assert found == case["is"]


@golden("shared_items")
def test_shared_items(case: dict[str, Any]) -> None:
    assert reduce(shared_items, case["rows"]) == case["is"]


@golden("visible")
def test_visible(case: dict[str, Any]) -> None:
    found = visible(
        case["documents"],
        case["passages"],
        lambda _, known: known.items() >= case["filter"].items(),
        source_of=lambda one: one.get("source"),
        metadata_of=dict,
        source_key="source",
    )
    assert [one["name"] for one in found] == case["is"]


def refusal(case: dict[str, Any]) -> str:
    """Return the keys in which a chunk differs, or that the passages are from elsewhere; nothing if it may be read."""
    passages = [RetrievedChunk(frozenset(ids), text, metadata) for ids, text, metadata in case["passages"]]
    options = {"match_ids": False, "ignore_metadata": False, **case.get("options", {})}
    seen = VisibilityCheck("doc", passages, ignored_keys={"page"}, advice="say it", **options)
    try:
        for metadata in case["chunks"]:
            seen.check_chunk(metadata)
        seen.check_document(set(case["ids"]), "Tea was served. It rained.")
    except ConfigurationError as error:
        return str(error).partition("passages in ")[2].removesuffix("; say it") or "not in this store"
    return ""


@golden("visibility_check")
def test_visibility_check(case: dict[str, Any]) -> None:
    assert refusal(case) == case["is"]


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\0", "\u200b", "* * *", "\u2014", "\U0001f44d"])
@pytest.mark.parametrize("declared", [False, True])
def test_wall_takes_no_passage_without_words_for_evidence(text: str, declared: bool) -> None:
    passages = [RetrievedChunk(frozenset({"1"}), text, {})]
    seen = VisibilityCheck(
        "doc", passages, ignored_keys=frozenset(), advice="say it", match_ids=True, ignore_metadata=declared
    )
    with pytest.raises(ConfigurationError, match="say it"):
        seen.check_document({"1"}, f"Tea was served. {text} So was coffee.")
