"""What the common splitters take apart is put together again, or said not to be exact."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import llama_index.core
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_text_splitters import (
    CharacterTextSplitter,
    MarkdownTextSplitter,
    RecursiveCharacterTextSplitter,
    TokenTextSplitter,
)
from llama_index.core import Document
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import (
    HierarchicalNodeParser,
    MarkdownNodeParser,
    NodeParser,
    SentenceSplitter,
    SentenceWindowNodeParser,
    get_leaf_nodes,
)
from llama_index.core.node_parser import TokenTextSplitter as TokenNodeParser
from llama_index.core.schema import BaseNode

from lanes import examples
from llamaindex_selfroute.stored.links import Link, put_together
from selfroute.documents import RebuiltDocument, rebuild
from selfroute.documents.chunks import chunks_of

EXAMPLES = 40  # of each splitter; two thousand find no more
Split = Callable[..., tuple[RebuiltDocument, list[str]]]
"""Takes a text apart, given size and overlap; returns what was put together, and the chunks."""


@pytest.fixture(scope="module", autouse=True)
def _encodings_at_hand() -> Iterator[None]:
    """Tiktoken would download what LlamaIndex ships."""
    with pytest.MonkeyPatch.context() as patch:
        shipped = Path(llama_index.core.__file__).parent / "_static" / "tiktoken_cache"
        patch.setenv("TIKTOKEN_CACHE_DIR", str(shipped))
        yield


def _sentences(text: str) -> list[str]:
    """The default asks nltk, which refuses to read its word lists where an installer has hard-linked them."""
    return re.findall(r"[^.!?]*[.!?]+\s*|[^.!?]+$", text) or [text]


def _langchain(make: Callable[..., Any], *, index: bool) -> Split:
    def split(text: str, size: int, overlap: int, *, strip: bool = True) -> tuple[RebuiltDocument, list[str]]:
        splitter = make(chunk_size=size, chunk_overlap=overlap, strip_whitespace=strip, add_start_index=index)
        rows = [(chunk.page_content, chunk.metadata) for chunk in splitter.create_documents([text])]
        return rebuild(chunks_of(rows, start_key="start_index")), [text for text, _ in rows]

    return split


def _llamaindex(make: Callable[[int, int], Callable[[Sequence[BaseNode]], Sequence[BaseNode]]]) -> Split:
    def split(text: str, size: int, overlap: int, **_: bool) -> tuple[RebuiltDocument, list[str]]:
        nodes = make(size + 7, overlap)([Document(id_="minutes", text=text)])  # below, some of them never end
        return put_together(map(Link.of, nodes)), [node.get_content() for node in nodes]

    return split


def _sentence_splitter(size: int, overlap: int, **more: Any) -> SentenceSplitter:
    return SentenceSplitter(chunk_size=size, chunk_overlap=overlap, chunking_tokenizer_fn=_sentences, **more)


def _windows(*_: int, **more: Any) -> NodeParser:
    return SentenceWindowNodeParser.from_defaults(sentence_splitter=_sentences, **more)


def _hierarchical(size: int, overlap: int) -> NodeParser:
    levels = {"coarse": _sentence_splitter(3 * size, overlap), "fine": _sentence_splitter(size, overlap)}
    return HierarchicalNodeParser.from_defaults(node_parser_ids=list(levels), node_parser_map={**levels})


def _leaves(size: int, overlap: int) -> Callable[[Sequence[BaseNode]], Sequence[BaseNode]]:
    return lambda documents: get_leaf_nodes(list(_hierarchical(size, overlap)(documents)))


def _pipeline(size: int, overlap: int) -> Callable[[Sequence[BaseNode]], Sequence[BaseNode]]:
    pipeline = IngestionPipeline(transformations=[MarkdownNodeParser(), _sentence_splitter(size, overlap)])
    return lambda documents: pipeline.run(documents=list(documents))  # type: ignore[arg-type]


TOKENS = partial(TokenTextSplitter, encoding_name="cl100k_base")
LANGCHAIN: dict[str, Callable[..., Any]] = {
    "RecursiveCharacterTextSplitter": RecursiveCharacterTextSplitter,
    "RecursiveCharacterTextSplitter by tokens": partial(
        RecursiveCharacterTextSplitter.from_tiktoken_encoder, "cl100k_base"
    ),
    "CharacterTextSplitter by lines": partial(CharacterTextSplitter, separator="\n"),
    "CharacterTextSplitter by words": partial(CharacterTextSplitter, separator=" "),
    "TokenTextSplitter": TOKENS,
    "MarkdownTextSplitter": MarkdownTextSplitter,
}
WITH_OFFSETS = {name: _langchain(make, index=True) for name, make in LANGCHAIN.items()}
WITHOUT_OFFSETS = {f"{name} without offsets": _langchain(make, index=False) for name, make in LANGCHAIN.items()}
LLAMAINDEX: dict[str, Split] = {
    "SentenceSplitter": _llamaindex(_sentence_splitter),
    "TokenTextSplitter of LlamaIndex": _llamaindex(
        lambda size, overlap: TokenNodeParser(chunk_size=size, chunk_overlap=overlap)
    ),
    "SentenceWindowNodeParser": _llamaindex(_windows),
    "HierarchicalNodeParser": _llamaindex(_hierarchical),
    "HierarchicalNodeParser, leaves": _llamaindex(_leaves),
    "MarkdownNodeParser": _llamaindex(lambda *_: MarkdownNodeParser()),
    "MarkdownNodeParser, then SentenceSplitter": _llamaindex(_pipeline),
    "SentenceSplitter without links": _llamaindex(partial(_sentence_splitter, include_prev_next_rel=False)),
    "SentenceWindowNodeParser without links": _llamaindex(partial(_windows, include_prev_next_rel=False)),
}
ALL = {**WITH_OFFSETS, **WITHOUT_OFFSETS, **LLAMAINDEX}
every_splitter = pytest.mark.parametrize("split", ALL.values(), ids=ALL)

WORDS = ["the", "crane", "met", "in", "old", "hall", "and", "tea", "was", "by", "Ms", "Okafor", "a", "of", "Yes", "No"]
sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(
    lambda words: " ".join(words).capitalize() + "."
)
paragraphs = st.lists(sentences, min_size=1, max_size=6).map(" ".join)
prose = st.lists(paragraphs, min_size=1, max_size=8).map("\n\n".join)
blanks = st.text(" \t\n\r\x0b\x0c\x1c\x85\u00a0\u3000\u2028", min_size=1, max_size=9)
messy = st.lists(sentences | st.sampled_from(WORDS) | blanks, max_size=40).map("".join)
LOOPS = ["same line\n", "ha ", "-", "Row the boat.\n", "|---|", " x"]
units = st.sampled_from(LOOPS) | sentences | st.text("ab .\n", min_size=1, max_size=7)
periodic = st.lists(st.builds(lambda unit, times: unit * times, units, st.integers(1, 40)), max_size=4).map("".join)
FENCE = "```\n# not a heading\nx = 1\n\n\ny = 2\n```"
BLOCKS = [FENCE, "# One", "## Two", "# One", "---", "***", "* a\n* b\n* a", "| a | b |\n|---|---|\n| 1 | 2 |", "A\n==="]
blocks = st.lists(paragraphs | st.sampled_from(BLOCKS), min_size=1, max_size=12)
markdown = st.builds(lambda parts, between: between.join(parts), blocks, st.sampled_from(["\n\n", "\n", "\n\n\n\n"]))
ODD = [
    *("é", "e\u0301", "是", "會議。", "😀", "👩‍👧", "\u200b", "\ufeff", "𝔘𝔫", "שלום", "ﬁ", "\u0301", "İ", " ", "\n\n"),
    ". ",
]
unicode = st.lists(st.sampled_from(ODD), max_size=80).map("".join)
windows = prose.map(lambda text: text.replace("\n", "\r\n"))
texts = st.one_of(prose, messy, periodic, markdown, unicode, windows, st.text("ab \n.", max_size=90), st.text())
sizes = st.builds(
    lambda size, share: (size, int(size * share)),
    st.integers(1, 40) | st.sampled_from([60, 100, 200]),
    st.floats(0, 0.99),
)


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _is_exact(whole: RebuiltDocument) -> bool:
    return whole.method == "offsets" and not whole.gaps


@every_splitter
@examples(EXAMPLES)
@given(text=texts, size=sizes, strip=st.booleans())
def test_splitter_is_exact_or_not_said_to_be(split: Split, text: str, size: tuple[int, int], strip: bool) -> None:
    whole, chunks = split(text, *size, strip=strip)
    if _is_exact(whole) and _squeezed(whole.text) != _squeezed(text):
        # The splitters look for what they cut and may find the last words before their place: nobody can tell.
        assert _squeezed(text).startswith(_squeezed(whole.text))
        assert text.find(chunks[-1]) < text.rfind(chunks[-1])
    elif whole.method == "order" and split is not LLAMAINDEX["HierarchicalNodeParser"]:
        assert all(chunk in whole.text for chunk in chunks)
    assert whole.chunks <= len(chunks)


NAMES = ["Okafor", "Lin", "Brandt", "Osei", "Haddad", "Novak", "Silva", "Moreau", "Kaya", "Berg", "Ito", "Mensah"]
DEEDS = [
    *("asked about", "voted for", "objected to", "repaired", "inspected", "wrote of", "paid for", "forgot"),
    "measured",
]
THINGS = ["crane", "ledger", "harbour wall", "lamp", "boat house", "tea urn", "gate", "slipway", "rope store", "pump"]


def _sentence(random: Random) -> str:
    words = [f"In {random.randint(1900, 2020)}" if random.random() < 0.3 else "Then", random.choice(NAMES)]
    words += [random.choice(DEEDS), "the", random.choice(THINGS)]
    if random.random() < 0.5:
        words += ["and", random.choice(DEEDS), str(random.randint(2, 999)), "others,"]
        words += ["because", random.choice(NAMES), random.choice(DEEDS), "it"]
    return " ".join(words) + random.choice([".", ".", ".", "?", "!"])


def _prose(seed: int, paragraphs: int = 40) -> str:
    """Ordinary prose: many words come again, no sentence does."""
    random = Random(seed)  # noqa: S311
    sentences = list(dict.fromkeys(_sentence(random) for _ in range(9 * paragraphs)))
    return "\n\n".join(" ".join(sentences.pop() for _ in range(random.randint(1, 7))) for _ in range(paragraphs))


EXACT = {
    **WITH_OFFSETS,
    **{name: split for name, split in LLAMAINDEX.items() if "leaves" not in name and "then" not in name},
}
# LangChain itself may not find what it cut: by tokens and overlapping, or at one separator where there are others.
LOST = {f"CharacterTextSplitter by {what}" for what in ("lines", "words")} | {
    "RecursiveCharacterTextSplitter by tokens",
    "TokenTextSplitter",
}


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize(("size", "share", "strip"), [(200, 0.2, True), (500, 0.1, False), (1000, 0, True)])
def test_splitter_of_prose_is_exact(name: str, size: int, share: float, strip: bool) -> None:
    size = size // 5 if "oken" in name or name in LLAMAINDEX else size
    for seed in range(3):
        text = _prose(seed)
        whole, chunks = EXACT[name](text, size, int(size * share), strip=strip)
        if name in LOST and whole.method == "order":
            continue
        assert _is_exact(whole)
        assert _squeezed(whole.text) == _squeezed(text)
        assert whole.chunks == len(chunks) or name == "HierarchicalNodeParser"
        assert len(chunks) > 1 or name == "MarkdownNodeParser"


KEEPS_WORDS = {
    name: split
    for name, split in {**WITHOUT_OFFSETS, **LLAMAINDEX}.items()
    if not name.startswith("TokenTextSplitter without")
}


@pytest.mark.parametrize("split", KEEPS_WORDS.values(), ids=KEEPS_WORDS)
@pytest.mark.parametrize(("size", "overlap"), [(60, 0), (200, 40)])
def test_splitter_loses_no_word(split: Split, size: int, overlap: int) -> None:
    for seed in range(3):
        text = _prose(seed, 15)
        whole, _ = split(text, size, overlap)
        assert not Counter(text.split()) - Counter(whole.text.split())
        if not overlap:
            assert whole.text.split() == text.split()
        assert len(whole.text) < 1.1 * len(text), "what overlaps is written once"


LINES = {
    "the same line": "same line\n" * 800,
    "a song": "".join(f"{verse}. Row the boat. Row the boat gently.\n\nMerrily.\n\n" for verse in range(100)),
    "one word": "ha " * 2_000,
    "one character": "." * 4_000,
}


MINUTES = _prose(7, 20)
END = ((len(MINUTES), len(MINUTES)),)


def _nodes(text: str = MINUTES, **more: Any) -> list[BaseNode]:
    """Nodes as one run makes them; another run gives them other ids."""
    return list(_sentence_splitter(60, 12, **more).get_nodes_from_documents([Document(id_="minutes", text=text)]))


def _together(nodes: Sequence[BaseNode]) -> RebuiltDocument:
    return put_together(map(Link.of, nodes))


def _copied(node: BaseNode) -> BaseNode:
    copy = deepcopy(node)
    copy.id_ = f"{node.node_id}, again"
    return copy


def _shuffled(nodes: Sequence[BaseNode]) -> list[BaseNode]:
    return Random(0).sample(nodes, len(nodes))  # noqa: S311


NODES: dict[str, Callable[[], list[BaseNode]]] = {
    "one run": _nodes,
    "in any order": lambda: _shuffled(_nodes()),
    "two runs": lambda: _nodes() + _nodes(),
    "two runs in any order": lambda: _shuffled(_nodes() + _nodes()),
    "a run that stopped half-way and began again": lambda: _nodes()[:6] + _nodes(),
    "one node once more": lambda: [*(nodes := _nodes()), _copied(nodes[4])],
    "the last node once more": lambda: [*(nodes := _nodes()), _copied(nodes[-1])],
    "one node handed over twice": lambda: [*(nodes := _nodes()), nodes[4]],
    "without links in any order": lambda: _shuffled(_nodes(include_prev_next_rel=False)),
}


@pytest.mark.parametrize("name", NODES)
def test_nodes_along_their_links(name: str) -> None:
    whole = _together(NODES[name]())
    assert _is_exact(whole)
    assert _squeezed(whole.text) == _squeezed(MINUTES)
    assert whole.chunks == len(_nodes()) > 12


def _without(nodes: list[BaseNode], *hidden: int) -> list[BaseNode]:
    return [node for index, node in enumerate(nodes) if index not in {number % len(nodes) for number in hidden}]


def _place(node: BaseNode) -> tuple[int, int]:
    link = Link.of(node)
    assert link.start is not None
    return link.start, link.start + len(link.text)


@pytest.mark.parametrize("hidden", [(0,), (5,), (5, 6), (3, 8), (1, 2, 9), tuple(range(0, 12, 2))])
@pytest.mark.parametrize("shuffled", [True, False])
def test_nodes_missing_leave_gaps(hidden: tuple[int, ...], shuffled: bool) -> None:
    nodes = _nodes()
    held = _without(nodes, *hidden)
    whole = _together(_shuffled(held) if shuffled else held)
    assert whole.method == "offsets"
    for number in hidden:
        start, end = _place(nodes[number])
        assert any(left < end and start < right for left, right in whole.gaps)
    places = [_place(node) for node in held]
    assert not any(left < end and start < right for left, right in whole.gaps for start, end in places)
    assert all(node.get_content() in whole.text for node in held)


def test_nodes_of_which_the_last_is_missing_or_one_was_changed() -> None:
    whole = _together(_without(_nodes(), -1))
    assert (whole.method, whole.gaps) == ("offsets", ((len(whole.text), len(whole.text)),))
    nodes = _nodes()
    nodes[3].set_content("Minutes: " + nodes[3].get_content())  # type: ignore[attr-defined]
    whole = _together(nodes)
    assert whole.method == "order"
    assert all(node.get_content() in whole.text for node in nodes)


CUT_FROM_NODES = {"leaves": _leaves, "two splitters": _pipeline}


@pytest.mark.parametrize("make", CUT_FROM_NODES.values(), ids=CUT_FROM_NODES)
def test_nodes_cut_from_nodes(make: Any) -> None:
    """They know what is before them, and not what is after; their offsets count from what they were cut from."""
    text = f"# One\n\n{MINUTES}\n\n# Two\n\n{_prose(8, 20)}"
    nodes = list(make(40, 0)([Document(id_="minutes", text=text)]))
    whole = _together(nodes)
    assert (whole.method, whole.gaps, whole.text.split()) == ("order", (), text.split())
    number = next(index for index, node in enumerate(nodes) if nodes[index + 1].prev_node and index)
    assert len(_together(_without(nodes, number)).gaps) == 1
    assert _together(_without(nodes, 0)).gaps[0] == (0, 0)


def test_links_in_doubt() -> None:
    (leaf, *_) = [node for node in _hierarchical(40, 8)([Document(id_="minutes", text=MINUTES)]) if node.parent_node]
    changed = _nodes()[3]
    changed.set_content(changed.get_content().upper() + "!")  # type: ignore[attr-defined]
    assert [Link.of(node).start for node in (leaf, changed)] == [None, None]
    # By chance, offsets in three sections fit together.
    links = [
        Link("a", "xy", 0, None, None, None),
        Link("b", "ab", 3, "a", None, None),
        Link("c", "cd", 6, "b", None, None),
    ]
    assert put_together(links) == RebuiltDocument("xy\nab\ncd", "order", 3)
    # A run stopped before another one; links lead in a ring.
    links = [Link("a", "The crane was old.", 0, None, "b", None), Link("c", "Tea was served.", 19, None, None, None)]
    assert put_together(links) == RebuiltDocument("The crane was old.\nTea was served.", "offsets", 2, ((18, 19),))
    links = [Link("a", "one", None, "b", "b", None), Link("b", "two", None, "a", "a", None)]
    assert put_together(links).text == "one\ntwo"


def test_nodes_of_parents_and_children() -> None:
    nodes = list(_hierarchical(40, 8)([Document(id_="minutes", text=MINUTES)]))
    roots = [node for node in nodes if not node.parent_node]
    assert _together(_shuffled(nodes)) == _together(roots)
    assert len(roots) > 3
    assert _is_exact(_together(nodes))


@given(st.integers(0, 10**6), st.data())
@examples(EXAMPLES)
def test_nodes_of_two_versions(seed: int, data: st.DataObject) -> None:
    """Indexing it again stopped half-way; what was changed may have kept its length, and the nodes their ids."""
    random = Random(seed)  # noqa: S311
    changed = MINUTES.split(" ")
    for _ in range(2):
        changed[random.randrange(len(changed))] = random.choice([*NAMES, "", "and so on"])
    ids = data.draw(st.sampled_from([{}, {"id_func": lambda number, document: f"{document.node_id}-{number}"}]))
    links = data.draw(st.booleans())
    old, new = (_nodes(text, include_prev_next_rel=links, **ids) for text in (MINUTES, " ".join(changed)))
    cut = data.draw(st.integers(1, min(len(old), len(new)) - 1))
    for nodes in (new[:cut] + old[cut:], old[:cut] + new[cut:], *([] if ids else [old + new[:cut], new[:cut] + old])):
        whole = _together(nodes)
        texts = MINUTES.split(), " ".join(changed).split()
        assert not _is_exact(whole) or any(text[: len(whole.text.split())] == whole.text.split() for text in texts)
