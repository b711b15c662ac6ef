"""What a tracer sees: the same tree in all four modes, nothing left open, the decision when it falls."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing, closing
from typing import Any

import pytest
from langchain_core.callbacks import UsageMetadataCallbackHandler
from langchain_core.documents import Document
from langchain_core.exceptions import ContextOverflowError
from langchain_core.runnables import RunnableLambda, RunnableParallel

from langchain_parts import (
    DOCUMENTS,
    MODES,
    QUESTION,
    STREAMS,
    ListRetriever,
    Node,
    ScriptedModel,
    TreeTracer,
    a_chain,
    ask,
    outline,
)
from scenarios import DECLINED, FINAL, FOUND

every_mode = pytest.mark.parametrize("mode", MODES)
every_stream = pytest.mark.parametrize("mode", STREAMS)
DECLINED_TREE = {"SelfRouteChain": ["retrieve", "rag", "read_documents", "long_context"]}


async def trace(chain: Any, mode: str, given: Any = QUESTION, **config: Any) -> TreeTracer:
    """The trace of one call, errors included."""
    tracer = TreeTracer()
    try:
        await ask(chain, given, mode, {"callbacks": [tracer], **config})
    except Exception:  # noqa: BLE001
        assert tracer.root.error
    assert tracer.open_runs == []
    return tracer


def child(of: Node, name: str) -> Node:
    """The one child of that name."""
    (found,) = [node for node in of.children if node.name == name]
    return found


def _models(node: Node) -> list[Node]:
    below = [found for inner in node.children for found in _models(inner)]
    return [node, *below] if node.kind == "llm" else below


TREES = {
    "answered": (lambda: a_chain(("Mr Lin.",)), {"SelfRouteChain": ["retrieve", "rag"]}),
    "declined": (a_chain, DECLINED_TREE),
    "nothing retrieved": (
        lambda: a_chain(retriever=ListRetriever(passages=[])),
        {"SelfRouteChain": ["retrieve", "read_documents", "long_context"]},
    ),
    "nothing to read": (
        lambda: a_chain(documents=lambda _: []),
        {"SelfRouteChain": ["retrieve", "rag", "read_documents"]},
    ),
    "too long": (
        lambda: a_chain(failures={"long_context": [ContextOverflowError("too long")]}),
        {"SelfRouteChain": ["retrieve", "rag", "read_documents", "long_context", "read_documents", "long_context"]},
    ),
    "the retriever fails": (
        lambda: a_chain(retriever=ListRetriever(failures=[OSError("down")])),
        {"SelfRouteChain": ["retrieve"]},
    ),
    "the draft fails": (lambda: a_chain(failures={"rag": [OSError("down")]}), {"SelfRouteChain": ["retrieve", "rag"]}),
    "reading fails": (
        lambda: a_chain(documents=RunnableLambda(lambda _: 1 / 0).with_config(run_name="load")),
        {"SelfRouteChain": ["retrieve", "rag", {"read_documents": ["load"]}]},
    ),
    "the final fails": (lambda: a_chain(failures={"long_context": [OSError("down")]}), DECLINED_TREE),
}


@every_mode
@pytest.mark.parametrize("name", TREES)
async def test_the_tree_of_runs_shows_the_steps_that_ran(name: str, mode: str) -> None:
    chain, expected = TREES[name]
    tracer = await trace(chain(), mode)
    assert outline(tracer.root) == expected
    kinds = {node.name: node.kind for node in tracer.root.children}
    assert {name: kinds[name] for name in ("rag", "long_context") if name in kinds} == dict.fromkeys(
        [name for name in ("rag", "long_context") if name in kinds], "llm"
    )
    assert kinds["retrieve"] == "retriever"


@every_mode
async def test_the_run_is_named_as_configured_and_sits_below_its_caller(mode: str) -> None:
    tracer = await trace(RunnableParallel(a=a_chain().with_config(run_name="minutes")), mode)
    (mine,) = tracer.root.children
    assert outline(mine) == {"minutes": DECLINED_TREE["SelfRouteChain"]}


@every_mode
@pytest.mark.parametrize(
    "dressed",
    [
        lambda model: model,
        lambda model: model.with_retry(),
        lambda model: ScriptedModel(failures={"rag": [OSError()], "long_context": [OSError()]}).with_fallbacks([model]),
        lambda model: model.bind(stop=["\n"]),
        lambda model: model.with_config(tags=["mine"]),
    ],
    ids=["plain", "retry", "fallbacks", "bind", "config"],
)
async def test_every_model_run_bears_the_tag_of_its_step(dressed: Any, mode: str) -> None:
    tracer = await trace(a_chain(llm=dressed(ScriptedModel(draft=("unanswerable",), final=FINAL))), mode)

    tags = [set(run.tags) & {"selfroute:rag", "selfroute:long_context"} for run in _models(tracer.root)]
    assert tags[: len(tags) // 2] == [{"selfroute:rag"}] * (len(tags) // 2)
    assert tags[len(tags) // 2 :] == [{"selfroute:long_context"}] * (len(tags) // 2)
    assert len(tags) in {2, 4}


@every_mode
async def test_the_caller_s_tags_and_metadata_are_inherited(mode: str) -> None:
    tracer = await trace(a_chain(), mode, tags=["mine"], metadata={"tenant": 7})
    assert all("mine" in node.tags for node in [tracer.root, *tracer.root.children])
    assert all(run.metadata["tenant"] == 7 for run in [tracer.roots[0], *tracer.roots[0].child_runs])
    assert not any(
        tag.startswith("selfroute:") for name in ("retrieve", "read_documents") for tag in child(tracer.root, name).tags
    )


@every_mode
@pytest.mark.parametrize("draft", [("unanswerable",), ("Mr Lin.",)], ids=["declined", "answered"])
async def test_the_decision_is_announced_once_and_before_anything_is_read(draft: Any, mode: str) -> None:
    tracer = await trace(a_chain(draft), mode)
    result = await ask(a_chain(draft), QUESTION, mode)
    assert tracer.events == [("selfroute_decision", {"route": result["route"], "decision": result["decision"]})]
    json.dumps(tracer.events)
    at = tracer.log.index(("event", "selfroute_decision"))
    assert tracer.log.index(("start", "rag")) < at
    if result["route"] == "long_context":
        assert at < tracer.log.index(("start", "read_documents"))
        assert tracer.log.index(("end", "rag")) < at


@every_stream
async def test_the_decision_is_announced_before_the_first_text(mode: str) -> None:
    tracer, chain = TreeTracer(), a_chain(("Ms", " Okafor", " took", " the", " chair", "."))
    config: Any = {"callbacks": [tracer]}
    if mode == "stream":
        with closing(chain.stream(QUESTION, config)) as parts:
            next(parts)
    else:
        async with aclosing(chain.astream(QUESTION, config)) as parts:
            await anext(parts)
    assert [name for name, _ in tracer.events] == ["selfroute_decision"]


@every_mode
@pytest.mark.parametrize("max_context_tokens", [None, 20], ids=["whole", "trimmed"])
async def test_reading_records_no_text_of_the_documents(max_context_tokens: int | None, mode: str) -> None:
    secret = [Document("The whole minutes. " + "Secret word. " * 50, metadata={"source": "May"})]
    tracer = await trace(a_chain(documents=lambda _: secret, max_context_tokens=max_context_tokens), mode)
    recorded = child(tracer.root, "read_documents")
    assert "Secret" not in json.dumps([recorded.inputs, recorded.outputs])
    assert len(json.dumps([recorded.inputs, recorded.outputs])) < 1000


@every_mode
async def test_the_root_records_what_went_in_and_came_out(mode: str) -> None:
    tracer = await trace(a_chain(), mode, {"input": QUESTION})
    assert tracer.root.inputs == {"input": QUESTION}
    assert (tracer.root.outputs["answer"], tracer.root.outputs["route"]) == (FOUND, "long_context")


def _inside(kind: str) -> Any:
    load = RunnableLambda(lambda _: DOCUMENTS).with_config(run_name="load")

    async def aload(given: Any) -> list[Document]:
        await asyncio.sleep(0)
        return await load.ainvoke(given)

    return {
        "function": load.invoke,
        "runnable": load,
        "coroutine": aload,
        "returns a coroutine": lambda given: aload({**given}),
    }[kind]


@pytest.mark.parametrize(
    ("kind", "mode"),
    [(kind, mode) for kind in ("function", "runnable") for mode in MODES]
    + [(kind, mode) for kind in ("coroutine", "returns a coroutine") for mode in ("ainvoke", "astream")],
)
async def test_what_the_documents_run_is_a_child_of_reading(kind: str, mode: str) -> None:
    tracer = await trace(a_chain(documents=_inside(kind)), mode)
    assert outline(tracer.root) == {"SelfRouteChain": ["retrieve", "rag", {"read_documents": ["load"]}, "long_context"]}


@every_mode
async def test_an_error_is_recorded_where_it_happened(mode: str) -> None:
    chain = a_chain(failures={"long_context": [OSError("the wire is cut")]})
    tracer = await trace(chain, mode)
    failed = {node.name for node in tracer.root.children if node.error}
    assert failed == {"long_context"}
    assert "the wire is cut" in str(tracer.root.error)


@every_stream
async def test_a_decline_that_ends_by_itself_is_no_error(mode: str) -> None:
    tracer = await trace(a_chain(("un", "answerable", ".")), mode)
    assert [node.error for node in tracer.root.children] == [None] * 4


@pytest.mark.parametrize("step", ["rag", "long_context"])
@every_stream
async def test_runs_end_from_the_inside_out_when_the_reader_leaves(step: str, mode: str) -> None:
    reply = ("Ms", " Okafor", " took", " the", " chair", ".", *(f" word{n}" for n in range(50)))
    chain = a_chain(reply) if step == "rag" else a_chain(final=reply)
    tracer = TreeTracer()
    config: Any = {"callbacks": [tracer]}
    if mode == "stream":
        with closing(chain.stream(QUESTION, config)) as parts:
            for _, _ in zip(parts, range(2), strict=False):
                pass
    else:
        async with aclosing(chain.astream(QUESTION, config)) as parts:
            async for _ in parts:
                break
    ends = [name for what, name in tracer.log if what == "end"]
    assert ends[-2:] == [step, "SelfRouteChain"]
    assert tracer.open_runs == []
    assert chain.llm.calls[-1].ended == "closed"


async def test_events_show_the_steps_the_decision_and_the_chunks() -> None:
    events = [event async for event in a_chain(("un", "answerable")).astream_events(QUESTION, version="v2")]
    names = [(event["event"], event["name"]) for event in events]
    for expected in (
        ("on_chain_start", "SelfRouteChain"),
        ("on_retriever_end", "retrieve"),
        ("on_chat_model_start", "rag"),
        ("on_custom_event", "selfroute_decision"),
        ("on_chain_start", "read_documents"),
        ("on_chat_model_stream", "long_context"),
        ("on_chain_stream", "SelfRouteChain"),
    ):
        assert expected in names
    assert names[-1] == ("on_chain_end", "SelfRouteChain")
    assert names.index(("on_custom_event", "selfroute_decision")) < names.index(("on_chain_start", "read_documents"))
    said = "".join(
        str(event["data"]["chunk"].text)
        for event in events
        if event["event"] == "on_chat_model_stream" and "selfroute:long_context" in event["tags"]
    )
    assert said == FOUND
    shown = [
        event["data"]["chunk"]
        for event in events
        if event["event"] == "on_chain_stream" and event["name"] == "SelfRouteChain"
    ]
    assert "".join(part.get("answer", "") for part in shown) == FOUND
    assert events[-1]["data"]["output"]["answer"] == FOUND


@every_mode
async def test_a_usage_handler_counts_what_the_chain_reports(mode: str) -> None:
    handler = UsageMetadataCallbackHandler()
    result = await ask(a_chain(DECLINED.draft, usage=True), QUESTION, mode, {"callbacks": [handler]})
    assert handler.usage_metadata["scripted"]["total_tokens"] == result["usage"]["total_tokens"] > 0


@pytest.mark.parametrize("mode", ["batch", "abatch"])
async def test_each_question_of_a_batch_has_its_own_tree(mode: str) -> None:
    tracer, chain = TreeTracer(), a_chain()
    config: Any = {"callbacks": [tracer]}
    if mode == "batch":
        chain.batch(["a", "b", "c"], config)
    else:
        await chain.abatch(["a", "b", "c"], config)
    assert sorted(run.inputs["input"] for run in tracer.roots) == ["a", "b", "c"]
    assert len(tracer.events) == 3
    assert tracer.open_runs == []
