"""What a tracer of LangChain sees: the same tree in all four modes, its names, tags and contents, and the events."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.exceptions import ContextOverflowError
from langchain_core.runnables import RunnableLambda

from both_parts import pipeline_for
from langchain_parts import (
    DOCUMENTS,
    MODES,
    QUESTION,
    ListRetriever,
    ScriptedModel,
    TreeTracer,
    a_chain,
    ask,
    outline,
)
from scenarios import FOUND
from steering import BY_NAME, ONE_OF_EACH, Steered

every_mode = pytest.mark.parametrize("mode", MODES)
READ = "read_documents"
DECLINED_TREE = ["retrieve", "rag", READ, "long_context"]


def steered(name: str) -> Any:
    return pipeline_for("langchain invoke", BY_NAME[name]).asked


async def trace(chain: Any, mode: str, given: Any = QUESTION, **config: Any) -> TreeTracer:
    """The trace of one call, errors included."""
    tracer = TreeTracer()
    try:
        await ask(chain, given, mode, {"callbacks": [tracer], **config})
    except Exception:  # noqa: BLE001
        assert tracer.root.error
    assert tracer.open_runs == []
    return tracer


DOWN = OSError("the wire is cut")
LOAD = RunnableLambda(lambda _: DOCUMENTS).with_config(run_name="load")
FAILING = RunnableLambda(lambda _: 1 / 0).with_config(run_name="load")
TREES: dict[str, tuple[Any, list[Any], list[str]]] = {  # a chain, its runs in order, and those with an error
    "answered": (lambda: a_chain(("Mr Lin.",)), ["retrieve", "rag"], []),
    "declined": (a_chain, DECLINED_TREE, []),
    "nothing retrieved": (
        lambda: a_chain(retriever=ListRetriever(passages=[])),
        ["retrieve", READ, "long_context"],
        [],
    ),
    "nothing to read": (lambda: a_chain(documents=lambda _: []), ["retrieve", "rag", READ], []),
    "too long": (
        lambda: a_chain(failures={"long_context": [ContextOverflowError("too long")]}),
        [*DECLINED_TREE, READ, "long_context"],
        ["long_context"],
    ),
    "the retriever fails": (lambda: a_chain(retriever=ListRetriever(failures=[DOWN])), ["retrieve"], ["retrieve"]),
    "the draft fails": (lambda: a_chain(failures={"rag": [DOWN]}), ["retrieve", "rag"], ["rag"]),
    "reading fails": (
        lambda: a_chain(documents=FAILING),
        ["retrieve", "rag", {READ: ["load"]}],
        [READ],
    ),
    "the final fails": (lambda: a_chain(failures={"long_context": [DOWN]}), DECLINED_TREE, ["long_context"]),
    "sections": (
        lambda: steered("a second reading that declines"),
        ["retrieve", "rag", READ, "sections", READ, "sections", READ, "long_context"],
        [],
    ),
    "sections that are skipped": (
        lambda: steered("sections that would be most of the documents"),
        ["retrieve", "rag", READ, READ, "long_context"],
        [],
    ),
}


@every_mode
@pytest.mark.parametrize("name", TREES)
async def test_tree_of_runs_shows_the_steps_and_where_it_failed(name: str, mode: str) -> None:
    chain, expected, failed = TREES[name]
    root = (await trace(chain(), mode)).root
    assert outline(root) == {"SelfRouteChain": expected}
    kinds = {"retrieve": "retriever", READ: "chain"}
    assert [run.kind for run in root.children] == [kinds.get(run.name, "llm") for run in root.children]
    assert [run.name for run in root.children if run.error] == failed


DRESSED: dict[str, Any] = {
    "plain": lambda model: model,
    "fallbacks": lambda model: ScriptedModel(failures={"rag": [OSError()], "long_context": [OSError()]}).with_fallbacks(
        [model]
    ),
}


@every_mode
@pytest.mark.parametrize("max_context_tokens", [None, 20], ids=["whole", "trimmed"])
async def test_reading_records_no_text(max_context_tokens: int | None, mode: str) -> None:
    secret = [Document("The whole minutes. " + "Secret word. " * 50, metadata={"source": "May"})]
    chain = a_chain(documents=lambda _: secret, max_context_tokens=max_context_tokens)
    root = (await trace(chain, mode, {"input": QUESTION})).root
    (read,) = [run for run in root.children if run.name == READ]
    recorded = json.dumps([read.inputs, read.outputs])
    assert ("Secret" in recorded, "Tea was served" in recorded, len(recorded) < 1000) == (False, False, True)
    assert read.inputs == {"input": QUESTION, "retrieved": 2}
    (told,) = read.outputs["documents"]
    assert (told["source"], told["characters"] <= len(secret[0].page_content)) == ("May", True)
    assert told.get("trimmed", False) is (max_context_tokens is not None)
    outputs = (root.outputs["answer"], root.outputs["route"])
    assert (root.inputs, outputs) == ({"input": QUESTION}, (FOUND, "long_context"))


async def _aload(given: Any) -> list[Document]:
    await asyncio.sleep(0)
    found: list[Document] = await LOAD.ainvoke(given)
    return found


INSIDE: dict[str, Any] = {
    "function": LOAD.invoke,
    "runnable": LOAD,
    "coroutine": _aload,
    "returns a coroutine": lambda given: _aload({**given}),
}


@pytest.mark.parametrize(
    ("kind", "mode"), [(kind, mode) for kind in INSIDE for mode in MODES if mode[0] == "a" or "coroutine" not in kind]
)
async def test_what_the_documents_run_is_a_child_of_reading(kind: str, mode: str) -> None:
    tracer = await trace(a_chain(documents=INSIDE[kind]), mode)
    assert outline(tracer.root) == {"SelfRouteChain": ["retrieve", "rag", {READ: ["load"]}, "long_context"]}


one_of_each = pytest.mark.parametrize("scenario", ONE_OF_EACH, ids=str)


@one_of_each
async def test_events_show_the_steps_the_decision_and_the_chunks(scenario: Steered) -> None:
    chain = pipeline_for("langchain invoke", scenario).asked
    events = [event async for event in chain.astream_events(QUESTION, version="v2")]
    names = [(event["event"], event["name"]) for event in events]
    asked = [event for event in events if event["event"] == "on_chat_model_start"]
    assert [event["name"] for event in asked] == scenario.steps
    assert all(f"selfroute:{event['name']}" in event["tags"] for event in asked)
    assert (names[0], names[-1]) == (("on_chain_start", "SelfRouteChain"), ("on_chain_end", "SelfRouteChain"))
    assert ("on_retriever_end", "retrieve") in names
    output = events[-1]["data"]["output"]  # it holds no text of whole documents
    scenario.check((output["answer"], output["route"], output["answerable"]), output["decision"])
    decisions = [event["data"] for event in events if event["event"] == "on_custom_event"]
    assert decisions[-1] == {"route": scenario.route, "decision": output["decision"]}
    if scenario.final:
        decided = max(at for at, name in enumerate(names) if name == ("on_custom_event", "selfroute_decision"))
        assert decided < names.index(("on_chat_model_start", "long_context"))
    said = [event["data"]["chunk"].text for event in events if event["event"] == "on_chat_model_stream"]
    assert "".join(map(str, said)).endswith("".join(scenario.final or ()))
    shown = [event["data"]["chunk"] for event in events if event["event"] == "on_chain_stream"]
    assert "".join(part.get("answer", "") for part in shown) == scenario.answer


@every_mode
async def test_the_name_of_a_run_is_that_of_no_run_inside(mode: str) -> None:
    asking = RunnableLambda(lambda _: True)  # a policy may ask a model of its own
    tracer = await trace(a_chain(escalation=lambda case: asking.invoke(case.question)), mode, run_name="mine")
    names = [name for what, name in tracer.log if what == "start"]
    assert (names[0], names.count("mine"), "RunnableLambda" in names) == ("mine", 1, True)


class _EndRaises(BaseCallbackHandler):
    """A handler that fails as the chain's run ends, and notes what it hears of it."""

    raise_error = run_inline = True

    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_chain_end(self, outputs: Any, *, parent_run_id: Any = None, **_: Any) -> None:
        if parent_run_id is None:
            self.heard.append("end")
            raise KeyError

    def on_chain_error(self, error: BaseException, *, parent_run_id: Any = None, **_: Any) -> None:
        if parent_run_id is None:
            self.heard.append("error")


@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
async def test_run_ends_once(mode: str) -> None:
    handler = _EndRaises()
    with pytest.raises(KeyError):
        await ask(a_chain(), QUESTION, mode, {"callbacks": [handler]})
    assert handler.heard == ["end"]
