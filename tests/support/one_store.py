"""One real store of eight documents, in either framework, and what a question reads of it.

Its vectors know words and no numbers, as real ones hardly do; those of the kind "weights" are real.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.llms import LLM
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.vector_stores.chroma import ChromaVectorStore

from both_parts import Outcome, Pipeline, in_the_words_of
from in_chroma import new_chroma, new_collection
from langchain_selfroute import SelfRouteChain
from langchain_stores import chunks_of
from llamaindex_parts import ScriptedLLM
from llamaindex_selfroute import SelfRouteQueryEngine
from selfroute_workbench.demo import with_langchain, with_llamaindex
from word_vectors import LangChainWords, LlamaIndexWords

PLACES = ("harbour", "bakery", "school", "railway", "orchard", "museum", "bridge", "choir")
WORK = (
    "The {place} of Tarn opened in 18{n}1, after two winters of building in the rain.",
    "Every spring the people of the {place} repair the roof, and the mayor thanks them with a supper.",
    "The {place} keeps its accounts in a green ledger, which the clerk of Tarn reads each quarter.",
    "In the flood of 18{n}7 the water stood knee-deep in the {place}, and the records were carried upstairs.",
    "A visitor wrote that the {place} was the tidiest in the county, but that the stairs were steep.",
    "The warden of the {place} was called {warden}, and she stayed for {n} years.",
    "Whoever wants to see the {place} by night fills in form TN-{code} at the gate of the warden.",
    "The {place} sells its old timber at the autumn fair, and the money goes to the widows' fund.",
    "Since the new road was laid, the {place} has had {n}0 guests a week, most of them on Sundays.",
)
WARDENS = ("Ottoline", "Brida", "Cosima", "Delphine", "Evadne", "Fenella", "Griselda", "Hesper")
CODES = ("4471", "4417", "4741", "4714", "7441", "7414", "7144", "1744")  # which vectors hardly tell from one another
TEXTS = {
    f"{place}.md": "\n\n".join(line.format(place=place, n=n, warden=warden, code=code) for line in WORK)
    for n, (place, warden, code) in enumerate(zip(PLACES, WARDENS, CODES, strict=True), 2)
}
QUESTION, ANSWER = "What was the warden of the orchard called?", "Evadne"
RIGHT = "orchard.md"
BY_WORDS = {"Which place has form TN-4714?": "railway.md", "Which place has form TN-7144?": "bridge.md"}
_SIZE = 110  # characters of a chunk: a sentence or so
_LONG = "Read the following text"  # how the prompt of the last step begins


class Model:
    """Answers from whole documents, and writes `draft` where it reads less; it keeps the prompts."""

    def __init__(self, draft: str = "unanswerable") -> None:
        self.prompts: list[str] = []
        self.draft = draft

    def reply(self, prompt: str) -> str:
        """Return the reply to a prompt."""
        self.prompts.append(prompt)
        return ANSWER if prompt.startswith(_LONG) else self.draft


@cache
def chunks() -> list[Document]:
    """The chunks of all documents."""
    return [chunk for name, text in TEXTS.items() for chunk in chunks_of(text, size=_SIZE, source=name)]


@cache
def store(kind: str = "memory") -> VectorStore:
    """A store of LangChain that holds them."""
    embedding = with_langchain.load_embeddings() if kind == "weights" else LangChainWords()
    if kind != "chroma":
        return InMemoryVectorStore.from_documents(chunks(), embedding)
    made = new_chroma(embedding)
    made.add_documents(chunks())
    return made


@cache
def index(kind: str = "memory") -> VectorStoreIndex:
    """An index of LlamaIndex over the same documents."""
    nodes = [_node(number, chunk) for number, chunk in enumerate(chunks())]
    context = None
    if kind == "chroma":
        context = StorageContext.from_defaults(vector_store=ChromaVectorStore(new_collection()))
    embedding = with_llamaindex.load_embeddings() if kind == "weights" else LlamaIndexWords()
    return VectorStoreIndex(nodes, embed_model=embedding, storage_context=context)


def _node(number: int, chunk: Document) -> TextNode:
    name, start, text = chunk.metadata["source"], chunk.metadata["start_index"], chunk.page_content
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=name)}
    id_ = f"{name} {number}"
    return TextNode(text=text, id_=id_, start_char_idx=start, end_char_idx=start + len(text), relationships=source)


def runnable(model: Model) -> Runnable[Any, str]:
    """The model in LangChain."""
    return RunnableLambda(lambda prompt: model.reply(prompt.to_string().removeprefix("Human: ")))


def llm(model: Model) -> LLM:
    """The model in LlamaIndex."""

    def reply(prompt: str) -> tuple[str]:
        return (model.reply(prompt),)

    return ScriptedLLM(draft=reply, looks=(reply,), final=reply, marker=_LONG, is_chat=False)


def pipeline(framework: str, kind: str = "memory", *, model: Model | None = None, **options: Any) -> Any:
    """A chain or an engine over the store."""
    model = model or Model()
    if framework == "langchain":
        return SelfRouteChain.from_vectorstore(store(kind), runnable(model), **options)
    return SelfRouteQueryEngine.from_index(index(kind), llm=llm(model), **options)


async def ask(pipeline: Any, question: str = QUESTION, mode: str = "whole") -> Outcome:
    """Ask a chain or an engine."""
    host = "langchain" if isinstance(pipeline, SelfRouteChain) else "llamaindex"
    return await Pipeline(f"{host} {in_the_words_of(host, mode)}", pipeline).ask(question)


def found_in(outcome: Outcome) -> list[str]:
    """The names of the documents of the retrieved passages, best first."""
    return [one.split()[0] if isinstance(one, str) else one.metadata["source"] for one in outcome.found]
