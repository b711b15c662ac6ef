"""The files, loaders and splitters of `benchmarks/loaders.py`, which the tests of both frameworks use, too."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from langchain_core.documents import Document
from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document as Node

from word_vectors import LangChainWords, LlamaIndexWords

Load = Callable[[Path], list[Any]]
Split = Callable[[list[Any]], list[Any]]
HEAD = "Harbour board of Haldon, yearly report."  # on each page
TOPICS = {
    "Boats": ("sloop", "ketch", "barge"),
    "Crane": ("crane", "winch", "hoist"),
    "Costs": ("clerk", "bank", "crew"),
}
GOODS = ("rope", "coal", "lamp oil", "herring", "timber", "slate", "barley")
YEARS = range(2001, 2007)
FILE = "llama_index.readers.file"


# The files


def paragraph(year: int, topic: str) -> str:
    """Write eight sentences that stand nowhere else."""
    first = 100 * (year - 2000) + 30 * list(TOPICS).index(topic)
    return " ".join(
        f"The {TOPICS[topic][n % 3]} took {first + n} crates of {GOODS[(first + n) % 7]} in week {n * 6 + year % 7}."
        for n in range(8)
    )


def pages() -> list[str]:
    """Write a page for each year, all with the same head."""
    return ["\n\n".join([HEAD, *(paragraph(year, topic) for topic in TOPICS)]) for year in YEARS]


def report(title: str, year: str, topic: str, text: str) -> str:
    """Write a report in some markup; its sections have the same names in each year."""
    years = (year.format(y) + "".join(topic.format(t) + text.format(paragraph(y, t)) for t in TOPICS) for y in YEARS)
    return title.format("The harbour of Haldon") + text.format(HEAD) + "".join(years)


def program() -> str:
    """Write a module of Python."""
    return "\n\n".join(
        f'def {topic.lower()}_{year}(crates: int) -> int:\n    """Count what the {TOPICS[topic][0]} took."""\n'
        f"    left = {year} - crates\n    for week in range({year % 7 + 3}):\n        left -= week * {year % 100}\n"
        "    return left\n"
        for year in YEARS
        for topic in TOPICS
    )


TEXTS: dict[str, Callable[[], str]] = {
    "txt": lambda: "\n\n".join(pages()),
    "md": lambda: report("# {}\n\n", "## {}\n\n", "### {}\n\n", "{}\n\n"),
    "html": lambda: (
        report("<html><body><h1>{}</h1>\n", "<h2>{}</h2>\n", "<h3>{}</h3>\n", "<p>{}</p>\n") + "</body></html>"
    ),
    "py": program,
    "json": lambda: json.dumps(rows()),
}


def rows() -> list[dict[str, Any]]:
    """Write the report as rows."""
    return [{"year": year, "topic": topic, "said": paragraph(year, topic)} for year in YEARS for topic in TOPICS]


def write(folder: Path, kind: str) -> Path:
    """Write the file of this kind."""
    path = folder / f"report.{kind}"
    if kind == "pdf":
        made = resolve_name("fpdf:FPDF")()
        made.set_font("Helvetica", size=12)
        for text in pages():
            made.add_page()
            made.multi_cell(0, 6, text)
        made.output(str(path))
    elif kind == "pptx":
        deck, inches = resolve_name("pptx:Presentation")(), resolve_name("pptx.util:Inches")
        for year in YEARS:
            slide = deck.slides.add_slide(deck.slide_layouts[5])
            slide.shapes.title.text = f"The year {year}"
            for n, topic in enumerate(TOPICS):
                box = slide.shapes.add_textbox(inches(1), inches(2 + n), inches(8), inches(1))
                box.text_frame.text = paragraph(year, topic)
        deck.save(str(path))
    elif kind == "csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, rows()[0])
            table.writeheader()
            table.writerows(rows())
    else:
        path.write_text(TEXTS[kind](), "utf-8", newline="\n")
    return path


# What loads


def community(name: str, **options: Any) -> Load:
    """Return a loader of langchain-community."""
    return lambda path: list(resolve_name(f"langchain_community.document_loaders:{name}")(str(path), **options).load())


def text_loader(path: Path) -> list[Any]:
    """Load a text by `TextLoader`, or as it does where its package is not installed."""
    if Row.lacks("langchain_community"):
        return [Document(path.read_text("utf-8"), metadata={"source": str(path)})]
    return community("TextLoader")(path)


def slides(path: Path) -> list[Any]:
    """Load the elements of slides; the model that Unstructured would download only tells titles from prose."""
    language = resolve_name("spacy:blank")("en")
    language.add_pipe("sentencizer")
    setattr(resolve_name("unstructured.nlp.tokenize"), "_load_spacy_model", lambda: language)  # noqa: B010
    return simple(community("UnstructuredPowerPointLoader", mode="elements")(path))


def elements(path: Path) -> list[Any]:
    """Make by hand what Unstructured makes of a PDF: an element of each paragraph, with the number of its page."""
    about = {"source": str(path), "file_directory": str(path.parent), "filename": path.name, "languages": ["eng"]}
    about |= {"filetype": "application/pdf", "last_modified": "2026-11-28T12:00:00"}
    made = []
    for page, text in enumerate(pages(), 1):
        first = uuid5(NAMESPACE_OID, text).hex
        for n, part in enumerate(text.split("\n\n")):
            own = {
                "page_number": page,
                "coordinates": {"points": [[0, n]]},
                "category": "NarrativeText" if n else "Title",
            }
            own |= {"parent_id": first, "element_id": uuid5(NAMESPACE_OID, part).hex} if n else {"element_id": first}
            made.append(Document(part, metadata={**about, **own}))
    return simple(made)


def simple(made: list[Any]) -> list[Any]:
    """Drop lists and dicts from the metadata, which stores refuse."""
    return list(resolve_name("langchain_community.vectorstores.utils:filter_complex_metadata")(made))


class PdfPages(BaseReader):
    """Reads PDFs as `PDFReader` does, where its package is not installed."""

    def __init__(self, *, return_full_document: bool = False) -> None:
        self.whole = return_full_document

    def load_data(self, file: Path, extra_info: dict[str, Any] | None = None) -> list[Any]:
        """Make a document of each page, with its label, or one of all."""
        about = {"file_name": file.name, **(extra_info or {})}
        texts = [page.extract_text() for page in resolve_name("pypdf:PdfReader")(file).pages]
        if self.whole:
            return [Node(text="\n".join(texts), metadata=about)]
        return [Node(text=text, metadata={"page_label": f"{page}", **about}) for page, text in enumerate(texts, 1)]


def folder_reader(path: Path, **options: Any) -> list[Any]:
    """Load by LlamaIndex's `SimpleDirectoryReader`."""
    reader = resolve_name("llama_index.core:SimpleDirectoryReader")
    own = {} if Row.lacks(FILE) else {".pdf": resolve_name(f"{FILE}:PDFReader")(**options)}
    loaded = list(reader(input_files=[path], file_extractor=own or {".pdf": PdfPages(**options)}).load_data())
    for one in loaded:  # node parsers leave room for it: a folder of another name would give other chunks
        one.metadata["file_path"] = f"/{path.parent.name}/{path.name}"
    return loaded


def flat(path: Path) -> list[Any]:
    """Make a document of LlamaIndex of a file."""
    return [Node(text=path.read_text("utf-8"), metadata={"file_name": path.name})]


# What splits


def characters(name: str = "RecursiveCharacterTextSplitter", **options: Any) -> Split:
    """Return a splitter of LangChain by size."""

    def split(loaded: list[Any]) -> list[Any]:
        kind = resolve_name(f"langchain_text_splitters:{name}")
        make = kind.from_language if "language" in options else kind
        return list(make(**{"chunk_size": 300, "chunk_overlap": 60, **options}).split_documents(loaded))

    return split


def headings(name: str, *marks: str, then: Split = list, **options: Any) -> Split:
    """Return a splitter of LangChain by headings, which knows nothing of sources."""

    def split(loaded: list[Any]) -> list[Any]:
        levels = [(mark, f"Header {n}") for n, mark in enumerate(marks, 1)]
        splitter = resolve_name(f"langchain_text_splitters:{name}")(levels, **options)
        parts = [(part, one) for one in loaded for part in splitter.split_text(one.page_content)]
        return then([Document(part.page_content, metadata={**one.metadata, **part.metadata}) for part, one in parts])

    return split


def semantic(loaded: list[Any]) -> list[Any]:
    """Split by meaning, in LangChain."""
    return list(
        resolve_name("langchain_experimental.text_splitter:SemanticChunker")(LangChainWords()).split_documents(loaded)
    )


def sentences(text: str) -> list[str]:
    """Cut into sentences; by default LlamaIndex asks nltk, which refuses to read hard-linked word lists."""
    return re.findall(r"[^.!?]*[.!?]+\s*|[^.!?]+$", text) or [text]


def nodes(name: str, **options: Any) -> Split:
    """Return a node parser of LlamaIndex."""
    return lambda loaded: list(resolve_name(f"llama_index.core.node_parser:{name}")(**options)(loaded))


def by_size(size: int, overlap: int = 15) -> Any:
    """Return LlamaIndex's default splitter."""
    kind = resolve_name("llama_index.core.node_parser:SentenceSplitter")
    return kind(chunk_size=size, chunk_overlap=overlap, chunking_tokenizer_fn=sentences)


def hierarchy(loaded: list[Any]) -> list[Any]:
    """Split twice, into small nodes of bigger ones, in LlamaIndex."""
    by = {"big": by_size(300, 20), "small": by_size(90, 20)}  # the overlap of its own default
    parser = resolve_name("llama_index.core.node_parser:HierarchicalNodeParser")
    return list(parser.from_defaults(node_parser_ids=list(by), node_parser_map=by)(loaded))


def leaves(loaded: list[Any]) -> list[Any]:
    """Split so, and keep only the small ones."""
    return list(resolve_name("llama_index.core.node_parser:get_leaf_nodes")(hierarchy(loaded)))


def functions(loaded: list[Any]) -> list[Any]:
    """Split Python by its syntax, in LlamaIndex."""
    language = resolve_name("tree_sitter:Language")(resolve_name("tree_sitter_python:language")())
    parser = resolve_name("tree_sitter:Parser")(language)
    return nodes("CodeSplitter", language="python", max_chars=500, parser=parser)(loaded)


# The rows


@dataclass(frozen=True)
class Row:
    """A loader of one kind of files, and a splitter behind it."""

    host: str
    loader: str
    splitter: str

    @property
    def name(self) -> str:
        """The words by which it is chosen."""
        return f"{self.host} {self.loader} {self.splitter}"

    @property
    def missing(self) -> str | None:
        """Which package it needs that is not there."""
        return self.lacks(f"{NEEDS[self.host]} {NEEDS.get(self.loader, '')} {NEEDS.get(self.splitter, '')}")

    @staticmethod
    def lacks(packages: str) -> str | None:
        """Return the first of some packages that is not there."""
        try:
            return next((package for package in packages.split() if not find_spec(package)), None)
        except ModuleNotFoundError as error:  # of a package around it
            return error.name

    def made(self, folder: Path) -> tuple[list[str], list[Any]]:
        """Write the file, load and split it; return the loaded texts, as a reader sees them, and the chunks."""
        kind, load = LOADERS[self.loader]
        loaded = load(write(folder, kind))
        texts = [one.page_content if self.host == "LangChain" else one.text for one in loaded]
        drops_markup = self.splitter in {WEB, PRESERVING, "HTMLNodeParser"}
        return [re.sub("<[^>]+>", "", text) if drops_markup else text for text in texts], SPLITTERS[self.splitter](
            loaded
        )


RECURSIVE, WITH = "RecursiveCharacterTextSplitter", "RecursiveCharacterTextSplitter, add_start_index"
OVERLAP = "60 % overlap"
MARKDOWN, SYNTAX = "MarkdownHeaderTextSplitter", "ExperimentalMarkdownSyntaxTextSplitter"
WEB, PRESERVING = "HTMLHeaderTextSplitter", "HTMLSemanticPreservingSplitter"
FLAT = "Document(text=...), .md"
MARKS, TAGS = ("#", "##", "###"), ("h1", "h2", "h3")
OFFSETS = characters(add_start_index=True)
TOKENS = {"encoding_name": "cl100k_base", "chunk_size": 60, "chunk_overlap": 12}
SPLITTERS: dict[str, Split] = {
    "none": list,
    WITH: OFFSETS,
    f"{WITH}, {OVERLAP}": characters(add_start_index=True, chunk_overlap=180),
    RECURSIVE: characters(),
    "LangChain's TokenTextSplitter": characters("TokenTextSplitter", **TOKENS),
    "SemanticChunker": semantic,
    'from_language("python")': characters(language="python"),
    MARKDOWN: headings(MARKDOWN, *MARKS),
    f"{MARKDOWN}, then {WITH}": headings(MARKDOWN, *MARKS, then=OFFSETS),
    f"{MARKDOWN}, strip_headers=False": headings(MARKDOWN, *MARKS, strip_headers=False),
    SYNTAX: headings(SYNTAX, *MARKS),
    WEB: headings(WEB, *TAGS),
    PRESERVING: headings(PRESERVING, *TAGS, max_chunk_size=300),
    "SentenceSplitter": lambda loaded: list(by_size(90)(loaded)),
    f"SentenceSplitter, {OVERLAP}": lambda loaded: list(by_size(90, 54)(loaded)),
    "TokenTextSplitter": nodes("TokenTextSplitter", chunk_size=90, chunk_overlap=15),
    "SentenceWindowNodeParser": nodes("SentenceWindowNodeParser", sentence_splitter=sentences),
    "HierarchicalNodeParser, leaves": leaves,
    "HierarchicalNodeParser, all in the docstore": hierarchy,
    "SemanticSplitterNodeParser": nodes(
        "SemanticSplitterNodeParser", embed_model=LlamaIndexWords(), sentence_splitter=sentences
    ),
    "CodeSplitter": functions,
    "MarkdownNodeParser": nodes("MarkdownNodeParser"),
    "MarkdownNodeParser, then SentenceSplitter": lambda loaded: list(by_size(90)(nodes("MarkdownNodeParser")(loaded))),
    "HTMLNodeParser": nodes("HTMLNodeParser"),
}
LOADERS: dict[str, tuple[str, Load]] = {
    **{f"TextLoader, .{kind}": (kind, text_loader) for kind in ("txt", "md", "html", "py")},
    "BSHTMLLoader": ("html", community("BSHTMLLoader", bs_kwargs={"features": "html.parser"})),
    "PyPDFLoader": ("pdf", community("PyPDFLoader")),
    'PyPDFLoader, mode="single"': ("pdf", community("PyPDFLoader", mode="single")),
    "UnstructuredPowerPointLoader, elements": ("pptx", slides),
    "UnstructuredPDFLoader, elements (made by hand)": ("pdf", elements),
    "CSVLoader": ("csv", community("CSVLoader")),
    "JSONLoader": ("json", community("JSONLoader", jq_schema=".[].said")),
    **{f"SimpleDirectoryReader, .{kind}": (kind, folder_reader) for kind in ("txt", "py", "md", "html", "pdf")},
    FLAT: ("md", flat),
    "PDFReader, return_full_document": ("pdf", partial(folder_reader, return_full_document=True)),
}
COMMUNITY = "langchain_community"
NEEDS = {
    "LangChain": "langchain_text_splitters",
    "LlamaIndex": "llama_index.core",
    "LangChain's TokenTextSplitter": "tiktoken",
    "SemanticChunker": "langchain_experimental",
    **dict.fromkeys((WEB, PRESERVING, "HTMLNodeParser"), "bs4"),
    "BSHTMLLoader": f"{COMMUNITY} bs4",
    **dict.fromkeys(("PyPDFLoader", 'PyPDFLoader, mode="single"'), f"{COMMUNITY} pypdf fpdf"),
    "UnstructuredPowerPointLoader, elements": f"{COMMUNITY} unstructured spacy pptx",
    "UnstructuredPDFLoader, elements (made by hand)": f"{COMMUNITY} fpdf",
    "CSVLoader": COMMUNITY,
    "JSONLoader": f"{COMMUNITY} jq",
    "CodeSplitter": "tree_sitter tree_sitter_python",
    "SimpleDirectoryReader, .md": FILE,
    **dict.fromkeys(("SimpleDirectoryReader, .pdf", "PDFReader, return_full_document"), "pypdf fpdf"),
}
SPLIT_BY = {
    "TextLoader, .txt": [WITH, f"{WITH}, {OVERLAP}", RECURSIVE, "LangChain's TokenTextSplitter", "SemanticChunker"],
    "TextLoader, .py": ['from_language("python")'],
    "TextLoader, .md": [MARKDOWN, f"{MARKDOWN}, then {WITH}", f"{MARKDOWN}, strip_headers=False", SYNTAX],
    "TextLoader, .html": [WEB, PRESERVING],
    "BSHTMLLoader": [WITH],
    "PyPDFLoader": [WITH, RECURSIVE],
    'PyPDFLoader, mode="single"': [WITH],
    "UnstructuredPowerPointLoader, elements": ["none", WITH, RECURSIVE],
    "UnstructuredPDFLoader, elements (made by hand)": ["none", WITH, RECURSIVE],
    "CSVLoader": ["none", WITH],
    "JSONLoader": ["none"],
    "SimpleDirectoryReader, .txt": [
        *("SentenceSplitter", f"SentenceSplitter, {OVERLAP}", "TokenTextSplitter", "SentenceWindowNodeParser"),
        "HierarchicalNodeParser, leaves",
        *("HierarchicalNodeParser, all in the docstore", "SemanticSplitterNodeParser"),
    ],
    "SimpleDirectoryReader, .py": ["CodeSplitter"],
    "SimpleDirectoryReader, .md": ["SentenceSplitter"],
    FLAT: ["SentenceSplitter", "MarkdownNodeParser", "MarkdownNodeParser, then SentenceSplitter"],
    "SimpleDirectoryReader, .html": ["SentenceSplitter", "HTMLNodeParser"],
    "SimpleDirectoryReader, .pdf": ["SentenceSplitter"],
    "PDFReader, return_full_document": ["SentenceSplitter"],
}
ROWS = [
    Row("LangChain" if "Loader" in loader else "LlamaIndex", loader, splitter)
    for loader, splitters in SPLIT_BY.items()
    for splitter in splitters
]
