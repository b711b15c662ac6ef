"""How a chain looks from outside: the types of its input and output, its graph, and the tool that an agent gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.callbacks import Callbacks
from langchain_core.documents import Document
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.graph import Graph
from typing_extensions import NotRequired, TypedDict

from langchain_selfroute.convert import below
from langchain_selfroute.running import recorded
from selfroute.answerability import Signal
from selfroute.calls.settings import Options
from selfroute.effects import Route
from selfroute.errors import InputError

_BRIEF = ("answer", "route", "answerable")


class SelfRouteInput(TypedDict):
    """The input of a chain. A string stands for `{"input": string}`; other keys are passed through."""

    input: str


class Ruling(TypedDict):
    """The decision of a policy: whether to go on, the policy's name, and why."""

    go: bool
    by: str
    reason: str


class Decision(TypedDict):
    """Why a question took its route: the verdict on the draft, with both numbers if it is graded."""

    declined: bool
    signal: Signal
    evidence: str
    ruling: Ruling | None
    prospect: NotRequired[int]
    confidence: NotRequired[int | None]


class StepTokens(TypedDict):
    """The tokens of one step: the provider's counts, or estimates."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int


class Usage(TypedDict):
    """The usage of a question. Amounts of money are decimal strings in US dollars.

    `ledger` has the other figures that `SelfRouteLedger.read` adds up.
    """

    rag: StepTokens | None
    sections: StepTokens | None
    long_context: StepTokens | None
    total_tokens: int
    estimated: bool
    long_context_only: int | None
    token_ratio: float | None
    cost: str | None
    cost_long_context_only: str | None
    cost_unknown: str | None
    ledger: dict[str, Any]


class Citation(TypedDict):
    """Where an answer stands: a stretch of a text in `context`, which has the index `document`.

    `score` is from 0 to 1. `page` is the page on which it begins, as the store names it, and missing if that is not
    known.
    """

    document: int
    source: Any
    start: int
    end: int
    text: str
    score: float
    page: NotRequired[int | str]


class Uncited(TypedDict):
    """The output of a chain without `citations=True`."""

    input: str
    retrieved: list[Document]
    context: list[Document]
    route: Route
    answer: str
    answerable: bool
    finish_reason: str | None
    decision: Decision
    usage: Usage


class SelfRouteOutput(Uncited, total=False):
    """The output of a chain, which also has the other keys of its input.

    Attributes:
        input: The question.
        retrieved: The retrieved passages, on every route.
        context: What the model answered from: the passages, sections of the documents, or the whole documents.
        route: The step that produced the answer.
        answer: The text of the answer. If no step answered, the last step's own words, or the refusal word if it gave
            none.
        answerable: False if every step that ran declined, or a policy kept the question from a further step.
        finish_reason: The provider's word for how the shown reply ended (`"stop"`, `"length"`, ...); None if the
            provider does not say, or no reply is shown.
        decision: Why this route, as plain JSON: `declined`, `signal`, `evidence`; `ruling`, the decision of a policy,
            or None; and if the draft is graded, `prospect` and `confidence`.
        usage: The usage of all steps, as plain JSON: tokens, costs and savings.
        citations: Only with `citations=True`: where the answer stands in `context`, at most three places, best first;
            empty if no step answered.
    """

    citations: list[Citation]


class ChainFields(Options, total=False):
    """The optional fields of `SelfRouteChain`, which documents them."""

    long_context_llm: Runnable[Any, Any] | None
    rag_prompt: Runnable[Any, Any]
    long_context_prompt: Runnable[Any, Any]
    document_prompt: BasePromptTemplate | None  # type: ignore[type-arg]


def graph_of(steps: Mapping[str, Runnable[Any, Any]], *, start: type[Any], end: type[Any], chooses: bool) -> Graph:
    """Return a graph of the steps and the ways between them.

    Args:
        steps: The runnables that perform the steps, by their names, in the order in which they are performed.
        start: The schema of the input.
        end: The schema of the output.
        chooses: Whether a question may go to the documents without a draft.
    """
    graph = Graph()
    before, last = graph.add_node(start), graph.add_node(end)
    nodes = {}
    answers = False  # whether the node before may end the question
    for name, step in steps.items():
        node = graph.add_node(step)
        nodes[name] = graph.nodes[node.id] = node.copy(name=name)
        graph.add_edge(before, nodes[name], data="declined" if answers else None, conditional=answers)
        before, answers = nodes[name], name in ("rag", "sections")
        if answers:
            graph.add_edge(before, last, data="answered", conditional=True)
    if chooses:
        graph.add_edge(nodes["retrieve"], nodes["read_documents"], data="long_context", conditional=True)
    graph.add_edge(before, last)
    return graph


def tool_fields(chain: Runnable[Any, Any], source_key: str) -> dict[str, Any]:
    """Return the fields of a tool that asks a chain and returns the brief form of its result.

    The artifact is the result as the chain's run records it: agents keep artifacts in their state and in their traces.
    """

    def shown(result: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        return brief_of(result, source_key), recorded(result)

    def ask(config: RunnableConfig, callbacks: Callbacks, **inputs: Any) -> tuple[Any, dict[str, Any]]:
        try:
            return shown(chain.invoke(inputs, below(config, callbacks)))
        except InputError as error:  # a model's arguments get an answer
            return f"Nothing was asked: {error}.", {"refused": True}

    async def aask(config: RunnableConfig, callbacks: Callbacks, **inputs: Any) -> tuple[Any, dict[str, Any]]:
        try:
            return shown(await chain.ainvoke(inputs, below(config, callbacks)))
        except InputError as error:
            return f"Nothing was asked: {error}.", {"refused": True}

    return {"func": ask, "coroutine": aask, "response_format": "content_and_artifact"}


def brief_of(result: Mapping[str, Any], source_key: str) -> dict[str, Any]:
    """Return the part of a result that an agent needs: answer, route, the names of the sources, and any citations."""
    names = [document.metadata.get(source_key, document.id) for document in result["context"]]
    sources = list(dict.fromkeys(str(name) for name in names if name is not None))
    cited = {"citations": result["citations"]} if "citations" in result else {}
    return {**{key: result[key] for key in _BRIEF}, "sources": sources, **cited}
