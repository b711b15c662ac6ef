"""Real clients of both hosts against a server on loopback; the server knows the steps by the model's name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from langchain_core.documents import Document as LangChainDocument
from langchain_core.language_models import BaseChatModel
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI
from llama_index.core.llms import LLM
from llama_index.core.schema import Document as LlamaIndexDocument
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.llms.google_genai import GoogleGenAI
from llama_index.llms.openai import OpenAIResponses
from llama_index.llms.openai_like import OpenAILike

import hosts_parts
import langchain_parts
import llamaindex_parts
import loopback
from both_parts import Pipeline, in_the_words_of
from hosts_parts import MODES, QUESTION, STREAMS
from langchain_selfroute import SelfRouteChain
from llamaindex_selfroute import SelfRouteQueryEngine
from loopback import Entry, LoopbackServer, Reply

CLIENTS = ("langchain openai", "langchain gemini", "llamaindex openai", "llamaindex completions", "llamaindex gemini")
PROTOCOLS = (*CLIENTS, "langchain responses", "llamaindex responses")

KEY = "sk-loop-5f1c9e7a2b4d"
ANSWER = "Ms Okafor chaired it, as in May."
REFUSAL = "unanswerable"
IN_WORDS = "The passages do not mention who chaired the meeting."
PASSAGES = {"opening": "The meeting began at nine.", "end": "It ended at noon."}
WHOLE = "The meeting began at nine. Ms Okafor chaired it. It ended at noon."
LONG = "\n".join(
    [
        *(f"Word {n} of the long minutes." if n % 7 else "A comma, a dot." for n in range(1500)),
        WHOLE,
        *(f"Item {n} was put off." for n in range(1500)),
    ]
)
SLOW = 0.03  # seconds between two pieces
MOST_AFTER = 4  # pieces after the last one that was needed; then the server waits for the client to leave
AT_ONCE = 12  # pieces that a busy machine may let pass until the server sees that its client has left
# LlamaIndex's model of OpenAI's responses takes no other names.
_KNOWN = {"draft": "gpt-4o-mini", "final": "gpt-4o"}
_STEPS = {known: name for name, known in _KNOWN.items()}


def wheres(clients: Sequence[str] = CLIENTS, modes: Sequence[str] = MODES) -> Any:
    """Parametrize `where` by clients and modes."""
    return hosts_parts.wheres(clients, modes)


def chat_model(server: LoopbackServer, protocol: str, name: str = "draft", **options: Any) -> BaseChatModel:
    """Make a model of LangChain; `usage=False`: the counts of a stream are not asked for."""
    usage = options.pop("usage", True)
    if protocol == "gemini":
        url = server.gemini_url
        return ChatGoogleGenerativeAI(base_url=url, google_api_key=KEY, model=name, max_retries=1, **options)
    options = {"stream_usage": usage, "use_responses_api": protocol == "responses", **options}
    return ChatOpenAI(base_url=server.openai_url, api_key=KEY, model=name, max_retries=0, **options)


def llm(server: LoopbackServer, protocol: str, name: str = "draft", **options: Any) -> LLM:
    """Make a model of LlamaIndex: one for each event loop, since clients keep connections of the loop they ran in."""
    usage = options.pop("usage", True)
    if protocol == "gemini":
        # Without these two the constructor asks the server for them.
        options = {"max_tokens": 256, "context_window": 1_000_000, **options}
        address: Any = {"base_url": server.gemini_url}
        return GoogleGenAI(model=name, api_key=KEY, http_options=address, max_retries=0, **options)
    if protocol == "responses":
        return OpenAIResponses(model=_KNOWN[name], api_base=server.openai_url, api_key=KEY, max_retries=0)
    options = {
        "additional_kwargs": {"stream_options": {"include_usage": True}} if usage else {},
        "is_chat_model": protocol == "openai",
        **options,
    }
    return OpenAILike(model=name, api_base=server.openai_url, api_key=KEY, max_retries=0, **options)


def asked_in(host: str, mode: str, asked: Any) -> Pipeline:
    """A chain or an engine over clients, asked in one mode."""
    return Pipeline(f"{host} {in_the_words_of(host, mode)}", asked)


def over(where: str, server: LoopbackServer, *, whole: str = WHOLE, model: Any = None, **fields: Any) -> Pipeline:
    """Make a chain or an engine over a server.

    Args:
        where: A host, a client and a mode, such as "langchain openai stream".
        server: The server.
        whole: The text of the document.
        model: Options of both models.
        fields: Fields of the chain or the engine.
    """
    host, protocol, mode = where.split()
    options = model or {}
    if host == "langchain":
        first: Any = chat_model(server, protocol, **options)
        name = "model" if protocol == "gemini" else "model_name"
        final = first.model_copy(update={name: "final"})  # shares the client, which takes long to make
    else:
        first, final = (llm(server, protocol, step, **options) for step in ("draft", "final"))
    return over_models(host, mode, first, final, whole=whole, **fields)


def over_models(host: str, mode: str, first: Any, final: Any, *, whole: str = WHOLE, **fields: Any) -> Pipeline:
    """Make a chain or an engine over the models of its two steps."""
    if host == "langchain":
        passages = [LangChainDocument(text, id=id_, metadata={"source": "minutes"}) for id_, text in PASSAGES.items()]
        found: Any = langchain_parts.ListRetriever(passages=passages)
        parts: dict[str, Any] = {"retriever": found, "llm": first, "long_context_llm": final}
        documents = [LangChainDocument(whole, id="minutes", metadata={"source": "minutes"})]
        return asked_in(host, mode, SelfRouteChain(**{**parts, "documents": documents, **fields}))
    nodes = [NodeWithScore(node=TextNode(id_=id_, text=text), score=0.9) for id_, text in PASSAGES.items()]
    found = llamaindex_parts.ListRetriever(nodes)
    parts = {"retriever": found, "llm": first, "long_context_llm": final, "streaming": mode in STREAMS}
    documents = [LlamaIndexDocument(id_="minutes", text=whole)]
    return asked_in(host, mode, SelfRouteQueryEngine(**parts, documents=documents, **fields))


def error_of(where: str, reply: Reply, step: str) -> BaseException:
    """Return what a step's model alone raises when it meets this reply."""
    host, protocol, mode = where.split()
    with LoopbackServer(lambda _: reply) as other, pytest.raises(Exception) as caught:  # noqa: PT011
        _ask_alone((chat_model, llm)[host == "llamaindex"](other, protocol, step), mode)
    return caught.value


def _ask_alone(model: Any, mode: str) -> None:
    if isinstance(model, LLM):
        model.complete(QUESTION)
    elif mode == "whole":
        model.invoke(QUESTION)
    elif mode == "stream":
        list(model.stream(QUESTION))
    else:
        asyncio.run(_all_of(model.astream(QUESTION)) if mode == "astream" else model.ainvoke(QUESTION))


async def _all_of(items: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in items]


def script(server: LoopbackServer, *, draft: Reply | str, final: Reply | str = ANSWER) -> None:
    """Have the server give each step its reply."""
    server.answer = lambda request: draft if step_of(request.model) == "draft" else final


def broken(server: LoopbackServer, step: str, reply: Reply | str) -> None:
    """Have the server give one step this reply; the draft before the final step declines."""
    script(server, draft=reply if step == "draft" else REFUSAL, final=reply)


def step_of(model: str) -> str:
    """Return the step that a model is asked for."""
    return _STEPS.get(model, model)


def steps(server: LoopbackServer) -> list[str]:
    """Return the steps that the server was asked for, once it has settled."""
    server.settle()
    return [step_of(entry.request.model) for entry in server.book]


def up_to(step: str) -> list[str]:
    """Return the steps up to this one."""
    return ["draft"] if step == "draft" else ["draft", "final"]


def entries(server: LoopbackServer, step: str) -> list[Entry]:
    """Return what the server booked for a step, once it has settled."""
    server.settle()
    return [entry for entry in server.book if step_of(entry.request.model) == step]


def counts(entry: Entry) -> dict[str, int]:
    """Return the usage of a step as the server billed it."""
    return {name: getattr(entry, name) for name in ("input_tokens", "output_tokens", "cached_tokens")}


def failing(protocol: str, status: int) -> Reply:
    """Return the answer of a provider that fails so."""
    known = {
        ("gemini", 429): loopback.GEMINI_RATE_LIMITED,
        ("gemini", 500): loopback.GEMINI_SERVER_ERROR,
        ("openai", 429): loopback.RATE_LIMITED,
        ("openai", 500): loopback.SERVER_ERROR,
    }
    return known.get((protocol, status), Reply(status=status))


TooLong = Callable[[int, int], Reply]
TOO_LONG: dict[str, tuple[TooLong, ...]] = {  # in OpenAI's way, and in vLLM's words
    "openai": (loopback.too_long_typed, loopback.too_long_in_words),
    "completions": (loopback.too_long_in_words,),
    "gemini": (loopback.gemini_too_long,),
}


def refusals(modes: Sequence[str] = MODES) -> Any:
    """Parametrize `where` with `too_long`, each way in which its server says that a prompt is too long."""
    return pytest.mark.parametrize(
        ("where", "too_long"),
        [
            pytest.param(*case.values, saying, marks=case.marks)
            for case in hosts_parts.cases(CLIENTS, modes)
            for saying in TOO_LONG[str(case.values[0]).split()[1]]
        ],
    )


def narrow(server: LoopbackServer, too_long: TooLong, limit: int, *, size: Callable[[str], int]) -> None:
    """Give the final model a window of so many tokens; a size is that of a prompt."""

    def answer(request: loopback.Request) -> Reply | str:
        if step_of(request.model) == "draft":
            return REFUSAL
        asked = size(request.prompt)
        return too_long(limit, asked) if asked > limit else ANSWER

    server.answer = answer
