"""Marks in prompts, on the wire: where the documents end, at the provider's own address, and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompt_values import PromptValue
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_openai import ChatOpenAI
from llama_index.core.prompts import PromptTemplate
from llama_index.core.schema import Document as LlamaDocument

import langchain_parts
import llamaindex_parts
import own_addresses
from both_parts import pipeline
from hosts_parts import MODES
from langchain_selfroute import SelfRouteChain
from llamaindex_selfroute import SelfRouteQueryEngine
from loopback import LoopbackServer, Request
from own_addresses import KEY

WHOLE = "The whole minutes of May. Ms Okafor chaired the meeting, and Mr Lin took the notes."
QUESTIONS = ("Who chaired the meeting?", "Who took the notes?")
ANSWER = "It is in the minutes."
TRACES = ("cache_control", "prompt_cache")

Json = dict[str, Any]

pytestmark = pytest.mark.usefixtures("frozen")


def answer(request: Request) -> str:
    """Decline unless the whole document is there."""
    return ANSWER if WHOLE in request.prompt else "unanswerable"


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(answer) as started:
        yield started


def knows_marks(framework: str, client: str) -> None:
    """Skip what the installed packages cannot mark."""
    old = "prompt_cache_options" not in ChatOpenAI.model_fields
    if framework == "langchain" and client != "anthropic" and old:
        pytest.skip("langchain-openai does not know prompt_cache_options yet")


def chain_over(llm: Any, **fields: Any) -> SelfRouteChain:
    """Return a chain over a document that the passages do not hold."""
    return langchain_parts.a_chain(llm=llm, **{"documents": [Document(WHOLE)], **fields})


def engine_over(llm: Any, **fields: Any) -> SelfRouteQueryEngine:
    return llamaindex_parts.an_engine(llm=llm, documents=[LlamaDocument(text=WHOLE)], **fields)


async def ask(server: LoopbackServer, where: str, client: str, question: str, wish: str) -> str:
    """Return the answer to a question that the passages do not answer."""
    one = pipeline(where, llm=own_addresses.model(where, server, client), documents=[WHOLE], prompt_cache=wish)
    return (await one.ask(question)).answer  # type: ignore[no-any-return]


def bodies(server: LoopbackServer) -> tuple[list[Json], list[Json]]:
    """Return the requests of the first and of the second step."""
    server.settle()
    requests = [entry.request for entry in server.book]
    reads = [WHOLE in request.prompt for request in requests]
    return (
        [one.body for one, whole in zip(requests, reads, strict=True) if not whole],
        [one.body for one, whole in zip(requests, reads, strict=True) if whole],
    )


def blocks(body: Json) -> list[Json]:
    """Return the blocks of the last message."""
    content = (body.get("messages") or body["input"])[-1]["content"]
    return [{"text": content}] if isinstance(content, str) else content


def marked_with(body: Json) -> list[tuple[str, Any]]:
    """Return the text of each marked block, with its mark."""
    return [(block["text"], block[name]) for block in blocks(body) for name in block if name.startswith(TRACES)]


def traces(bodies: list[Json]) -> list[str]:
    """Return what the requests say of prompt caches."""
    return [name for name in TRACES if name in json.dumps(bodies)]


OPENAI_MARK = {"mode": "explicit"}
MARKED = [
    ("langchain", "openai", "auto", OPENAI_MARK),
    ("langchain", "openai", "5m", OPENAI_MARK),
    ("langchain", "openai responses", "auto", OPENAI_MARK),
    ("langchain", "anthropic", "5m", {"type": "ephemeral", "ttl": "5m"}),
    ("langchain", "anthropic", "1h", {"type": "ephemeral", "ttl": "1h"}),
    ("llamaindex", "anthropic", "5m", {"type": "ephemeral", "ttl": "5m"}),
    ("llamaindex", "anthropic", "1h", {"type": "ephemeral", "ttl": "1h"}),
]


@pytest.mark.parametrize(("framework", "client", "wish", "mark"), MARKED)
@pytest.mark.parametrize("mode", MODES)
async def test_the_second_step_marks_where_the_documents_end_and_nothing_else(  # noqa: PLR0913, PLR0917 - the table's columns
    server: LoopbackServer, framework: str, client: str, wish: str, mark: Json, mode: str
) -> None:
    where = f"{framework} {mode}"
    knows_marks(framework, client)
    unmarked = LoopbackServer(answer)
    for question in QUESTIONS:
        assert await ask(server, where, client, question, wish) == ANSWER
        with unmarked:
            assert await ask(unmarked, where, client, question, "off") == ANSWER
    drafts, reads = bodies(server)
    assert len(drafts) == len(reads) == len(QUESTIONS)
    assert [marked_with(body) for body in drafts] == [[], []]
    (first,), (second,) = map(marked_with, reads)
    assert first == second  # whatever the question is
    assert first[1] == mark
    assert first[0].endswith(WHOLE)
    texts = ["".join(block["text"] for block in blocks(body)) for body in reads]
    assert all(question in text for question, text in zip(QUESTIONS, texts, strict=True))
    assert texts == ["".join(block["text"] for block in blocks(body)) for body in bodies(unmarked)[1]]
    assert traces([entry.request.body for entry in unmarked.book]) == []


@pytest.mark.parametrize("client", ["openai", "openai responses"])
def test_openai_is_told_to_keep_only_what_is_marked_and_finds_each_document_by_a_key(
    server: LoopbackServer, client: str
) -> None:
    knows_marks("langchain", client)
    for text in (WHOLE, f"{WHOLE} And Tuesday's."):
        for question in QUESTIONS:
            chain_over(chat(server, client), documents=[Document(text)]).invoke(question)
    drafts, reads = bodies(server)
    assert {json.dumps(body["prompt_cache_options"]) for body in drafts + reads} == {json.dumps(OPENAI_MARK)}
    assert not any("prompt_cache_key" in body for body in drafts)
    keys = {body["prompt_cache_key"] for body in reads}
    assert len(keys) == 2
    assert all(key.startswith("selfroute-") and len(key) <= 64 and KEY not in key for key in keys)


def chat(server: LoopbackServer, client: str = "openai", **fields: Any) -> Any:
    return own_addresses.chat_model(server, client, **fields)


CARRIED: dict[str, Callable[[LoopbackServer], Any]] = {
    "with_retry": lambda server: chat(server).with_retry(),
    "bind": lambda server: chat(server).bind(max_completion_tokens=99),
    "retry and bind": lambda server: chat(server).bind(stop=["x"]).with_retry(),
    "a fallback of its kind": lambda server: chat(server).with_fallbacks([chat(server, model="gpt-5.7")]),
    "configurable_fields": lambda server: chat(server).configurable_fields(
        temperature=ConfigurableField(id="temperature")
    ),
    "configurable_alternatives": lambda server: chat(server).configurable_alternatives(
        ConfigurableField(id="model"), default_key="one", other=chat(server, model="gpt-5.7")
    ),
    "a parser behind it": lambda server: chat(server) | StrOutputParser(),
    "a key of the user's": lambda server: chat(server).bind(prompt_cache_key="mine"),
}


@pytest.mark.parametrize("name", CARRIED)
def test_marks_go_through_what_is_built_around_a_model(server: LoopbackServer, name: str) -> None:
    knows_marks("langchain", "openai")
    assert chain_over(CARRIED[name](server)).invoke(QUESTIONS[0])["answer"] == ANSWER
    drafts, (read,) = bodies(server)
    assert [mark for _, mark in marked_with(read)] == [{"mode": "explicit"}]
    assert all(marked_with(body) == [] for body in drafts)
    assert (read["prompt_cache_key"] == "mine") == (name == "a key of the user's")


def test_a_structured_report_is_asked_for_with_the_same_marks(server: LoopbackServer) -> None:
    knows_marks("langchain", "openai")
    server.answer = lambda request: json.dumps(
        {"answerable": WHOLE in request.prompt, "answer": ANSWER if WHOLE in request.prompt else ""}
    )
    assert chain_over(chat(server), answerability="structured").invoke(QUESTIONS[0])["answer"] == ANSWER
    _, (read,) = bodies(server)
    assert [text[-len(WHOLE) :] for text, _ in marked_with(read)] == [WHOLE]


OWN_PROMPT = ChatPromptTemplate.from_messages(
    [("system", "Answer shortly."), ("human", "<doc>{context}</doc>\n{input}")]
)
QUESTION_FIRST = ChatPromptTemplate.from_messages([("human", "Answer {input} from this:\n{context}")])
QUESTION_FIRST_HERE = PromptTemplate("{query_str} Read this:\n{context_str}")
IN_PARTS = ChatPromptTemplate.from_messages(
    [("human", [{"type": "text", "text": "{context}"}, {"type": "text", "text": "{input}"}])]
)


@pytest.mark.parametrize("client", ["openai", "anthropic"])
def test_a_prompt_of_the_users_own_is_marked_where_its_documents_end(server: LoopbackServer, client: str) -> None:
    knows_marks("langchain", client)
    chain = chain_over(chat(server, client), long_context_prompt=OWN_PROMPT, prompt_cache="5m")
    assert chain.invoke(QUESTIONS[0])["answer"] == ANSWER
    _, (read,) = bodies(server)
    assert [text for text, _ in marked_with(read)] == [f"<doc>{WHOLE}"]
    assert blocks(read)[1]["text"] == f"</doc>\n{QUESTIONS[0]}"


@pytest.mark.parametrize(("system", "mode"), [("Answer shortly.", "explicit"), ("Rule. " * 1_000, None)])
def test_a_draft_is_kept_only_if_a_long_message_of_the_system_may_be_found_again(
    server: LoopbackServer, system: str, mode: str | None
) -> None:
    knows_marks("langchain", "openai")
    prompt = ChatPromptTemplate.from_messages([("system", system), ("human", "{context}\n{input}")])
    assert chain_over(chat(server), rag_prompt=prompt).invoke(QUESTIONS[0])["answer"] == ANSWER
    (draft,), _ = bodies(server)
    assert (draft.get("prompt_cache_options") or {}).get("mode") == mode
    assert marked_with(draft) == []


def _shortened(prompt: PromptValue) -> list[BaseMessage]:
    """Rewrite a prompt as it has always been: messages of text."""
    return [message.model_copy(update={"content": message.content.strip()}) for message in prompt.to_messages()]


CONVERSATION = {"input": QUESTIONS[0], "chat_history": [HumanMessage("Hello."), AIMessage("Hello!")]}
# Where a mark would be refused, useless, or not ours to make: the model, the options, and what is asked.
UNMARKED: dict[str, Callable[[LoopbackServer], tuple[Any, ...]]] = {
    "another address priced as OpenAI's": lambda server: (
        chat(server, base_url=server.openai_url),
        {"priced_as": "openai:gpt-5.6-luna"},
    ),
    "a history in front": lambda server: (chat(server), {}, CONVERSATION),
    "a fallback of another kind": lambda server: (chat(server).with_fallbacks([chat(server, model="gpt-4o")]), {}),
    "the question before the documents": lambda server: (
        chat(server),
        {"long_context_prompt": QUESTION_FIRST, "rag_prompt": QUESTION_FIRST},
    ),
    "a prompt in parts": lambda server: (chat(server), {"long_context_prompt": IN_PARTS, "rag_prompt": IN_PARTS}),
    "a model that is a function": lambda server: (RunnableLambda(lambda prompt: chat(server).invoke(prompt)), {}),
    "a function before the model": lambda server: (RunnableLambda(_shortened) | chat(server), {}),
    "a function before Anthropic's model": lambda server: (
        RunnableLambda(_shortened) | chat(server, "anthropic"),
        {"prompt_cache": "5m"},
    ),
    "an earlier model, bound around a parser": lambda server: (
        (chat(server) | StrOutputParser()).bind(model="gpt-4o"),
        {},
    ),
    "Anthropic, a history in front": lambda server: (
        chat(server, "anthropic"),
        {"prompt_cache": "5m"},
        CONVERSATION,
    ),
    "LlamaIndex, a prompt that begins with the question": lambda server: (
        own_addresses.llm(server, "anthropic"),
        {"prompt_cache": "5m", "long_context_prompt": QUESTION_FIRST_HERE},
    ),
    "LlamaIndex and OpenAI, whose package carries no marks": lambda server: (own_addresses.llm(server, "openai"), {}),
}


@pytest.mark.parametrize("name", UNMARKED)
def test_nothing_is_marked_where_it_could_be_refused_or_cannot_help(server: LoopbackServer, name: str) -> None:
    llm, fields, *inputs = UNMARKED[name](server)
    if name.startswith("LlamaIndex"):
        assert str(engine_over(llm, **fields).query(QUESTIONS[0])) == ANSWER
    else:
        assert chain_over(llm, **fields).invoke(*inputs or [QUESTIONS[0]])["answer"] == ANSWER
    server.settle()
    assert len(server.book) == 2
    assert traces([entry.request.body for entry in server.book]) == []


MARKED_TOOL = {
    "name": "look_up",
    "description": "Looks up.",
    "input_schema": {"type": "object", "properties": {}},
    "cache_control": {"type": "ephemeral"},
}
MARKED_BY_THE_USER: dict[str, Callable[[LoopbackServer], Any]] = {
    "options on the model": lambda server: chat(server, prompt_cache_options={"mode": "implicit"}),
    "options in the call": lambda server: chat(server).bind(prompt_cache_options={"mode": "implicit"}),
    "options in the body": lambda server: chat(server, extra_body={"prompt_cache_options": {"mode": "implicit"}}),
    "a mark on a tool of Anthropic's": lambda server: chat(server, "anthropic").bind_tools([MARKED_TOOL]),
    "Anthropic's own switch": lambda server: chat(server, "anthropic").bind(cache_control={"type": "ephemeral"}),
}


@pytest.mark.parametrize("name", MARKED_BY_THE_USER)
def test_who_marks_prompts_in_a_way_of_their_own_is_left_alone(server: LoopbackServer, name: str) -> None:
    knows_marks("langchain", "anthropic" if "Anthropic" in name else "openai")
    assert chain_over(MARKED_BY_THE_USER[name](server), prompt_cache="5m").invoke(QUESTIONS[0])["answer"] == ANSWER
    _, (read,) = bodies(server)
    assert not any("prompt_cache_breakpoint" in block for block in blocks(read))
    assert not any(block["text"].endswith(WHOLE) for block in blocks(read))
    assert "explicit" not in json.dumps(read)


def test_llamaindexes_own_switch_is_left_alone(server: LoopbackServer) -> None:
    llm = own_addresses.llm(server, "anthropic", cache_idx=-1)
    assert str(engine_over(llm, prompt_cache="1h").query(QUESTIONS[0])) == ANSWER
    _, (read,) = bodies(server)
    assert "1h" not in json.dumps(read)
    assert len(blocks(read)) == 1


@pytest.mark.parametrize(
    ("framework", "client"), [("langchain", "openai"), ("langchain", "anthropic"), ("llamaindex", "anthropic")]
)
def test_replies_that_an_evaluation_kept_are_taken_with_and_without_marks(
    server: LoopbackServer, framework: str, client: str, tmp_path: Path
) -> None:
    evaluation = pytest.importorskip("selfroute_workbench.evaluation")
    knows_marks(framework, client)

    over = chain_over if framework == "langchain" else engine_over
    questions = [{"question": question, "answers": [ANSWER]} for question in QUESTIONS]
    scores = []
    for wish in ("5m", "off", "1h"):
        asked = over(own_addresses.model(framework, server, client), prompt_cache=wish)
        done = evaluation.evaluate(asked, questions, folder=tmp_path)
        scores.append([result.answer for result in done.results])
        server.settle()
        assert len(server.book) == 2 * len(questions)
        assert any(marked_with(entry.request.body) for entry in server.book)
    assert scores[0] == scores[1] == scores[2]
