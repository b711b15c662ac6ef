"""Providers: the wires that they speak, the hosts' clients for them, and what is seen of each over loopback.

A row is a client of a host and a wire. What is seen of it is made by running a chain or an engine over that client
against a server that speaks the wire as its provider does, with the provider's own fields, leaks and words.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pkgutil import resolve_name
from typing import Any

from hosts_parts import MODES, STREAMS
from hosts_wires import ANSWER, KEY, LONG, MOST_AFTER, REFUSAL, SLOW, counts, over_models
from loopback import Entry, Json, LoopbackServer, Reply, Request, openai_usage
from selfroute.errors import NoReplyError

CELLS = ("verdict", "hang-up", "usage", "ending", "window")
USUAL = dict(zip(CELLS, ("clean", "hung up", "exact", "said", "read again with less"), strict=True))
NO_STREAM = ""  # there is nothing to hang up on
THOUGHTS = "They ask who chaired."
CUT_OFF = "On 4 May it was 12 at"
WINDOW = 2000  # words of a prompt: the unit that the server counts in
AT_MOST = 3.0  # seconds that a server waits for its client to leave
CANNED = "I cannot help with that."

Dress = Callable[[Entry, Json], Iterator[Json]]


# What providers send in place of what the protocol says


def _choice_of(made: Json) -> Json:
    return (made.get("choices") or [{}])[0]


def _said_in(made: Json) -> Json:
    """Return the message of a whole answer, or the delta of a piece."""
    choice = _choice_of(made)
    said: Json = choice.get("message") or choice.get("delta") or {}
    return said


def _azure(entry: Entry, made: Json) -> Iterator[Json]:
    """Report what filters found: of the prompt in a first chunk without choices, of the reply beside its text."""
    found = {"hate": {"filtered": False, "severity": "safe"}}
    about = {"prompt_filter_results": [{"prompt_index": 0, "content_filter_results": found}]}
    if "delta" in _choice_of(made) and "role" in _said_in(made):
        yield {"id": "", "object": "", "created": 0, "model": "", "choices": [], **about}
    if choice := _choice_of(made):
        choice["content_filter_results"] = found
    yield made | (about if "message" in choice else {})


def _xai(entry: Entry, made: Json) -> Iterator[Json]:
    """Report the usage so far with every piece; the reasoning is beside the completion, but in the total."""
    if "object" in made:
        usage = openai_usage(entry)
        made["usage"] = {**usage, "completion_tokens": entry.sent}
    yield made


def _so_far(entry: Entry, made: Json) -> Iterator[Json]:
    """Report the usage so far with every piece, as vLLM does with `continuous_usage_stats`."""
    if "object" in made:
        made["usage"] = openai_usage(entry)
    yield made


def _timed(entry: Entry, made: Json) -> Iterator[Json]:
    """Report times at the end, as llama.cpp does."""
    if _choice_of(made).get("finish_reason"):
        made["timings"] = {"prompt_n": entry.input_tokens, "prompt_ms": 1.0, "predicted_n": entry.sent}
    yield made


def _priced(entry: Entry, made: Json) -> Iterator[Json]:
    """Name the provider, the cost and its own word for the end, as OpenRouter does; `reasoning` has the thoughts."""
    said, choice = _said_in(made), _choice_of(made)
    if "reasoning_content" in said:
        thoughts = said.pop("reasoning_content")
        details = [{"type": "reasoning.text", "text": thoughts, "index": 0, "format": "unknown"}]
        said |= {"reasoning": thoughts, "reasoning_details": details}
    if finish := choice.get("finish_reason"):
        choice["native_finish_reason"] = finish
        if finish == "error":
            choice["error"] = {"code": 502, "message": "Provider disconnected"}
    if "usage" in made:
        made["usage"] |= {"cost": 0.0012, "is_byok": False, "cost_details": {"upstream_inference_cost": None}}
    yield made | ({"provider": "Novita"} if "object" in made else {})


def _mistral(entry: Entry, made: Json) -> Iterator[Json]:
    """Tell thoughts in a list of contents, and the usage with the last piece, asked for or not."""
    said, choice = _said_in(made), _choice_of(made)
    if thoughts := said.pop("reasoning_content", None):
        thinking = {"type": "thinking", "thinking": [{"type": "text", "text": thoughts}], "closed": True}
        said["content"] = [thinking, {"type": "text", "text": said["content"]}] if "message" in choice else [thinking]
    if "error" in made:
        yield {"object": "error", **made["error"]}
    elif choice:
        yield made | ({"usage": openai_usage(entry)} if choice.get("finish_reason") else {})


def _warm(entry: Entry, made: Json) -> Iterator[Json]:
    """Leave out the count of a prompt that is still in the cache, as older versions of Ollama do."""
    made.pop("prompt_eval_count", None)
    yield made


def _evaluated(entry: Entry, made: Json) -> Iterator[Json]:
    """Say how much of the prompt Ollama has read, which cuts what is too long."""
    if "prompt_eval_count" in made:
        made["prompt_eval_count"] = min(made["prompt_eval_count"], WINDOW)
    yield made


# The wires


def _refused(status: int, words: str, /, **more: Any) -> Callable[[int, int], Reply]:
    """Return what makes the error answer to a prompt that is too long, from a limit and the size of the prompt."""

    def too_long(limit: int, asked: int) -> Reply:
        error = {"message": words.format(limit=limit, asked=asked), "type": "invalid_request_error", **more}
        return Reply(status=status, error=error)

    return too_long


@dataclass(frozen=True)
class Wire:
    """How a provider speaks.

    Attributes:
        name: Its name.
        before: What it leaks before the text of a reply.
        fields: Fields of each of its replies.
        cut: Its word for a reply that ran out of tokens.
        stopped: Its word for a reply that it filtered or broke off; None if it does not.
        too_long: Makes its answer to a prompt that is too long; None if it has none.
    """

    name: str
    before: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    cut: str = "length"
    stopped: str | None = "content_filter"
    too_long: Callable[[int, int], Reply] | None = None

    def reply(self, text: str, **fields: Any) -> Reply:
        """Return a reply as this provider sends it."""
        return Reply(self.before + text if text else "", **{**self.fields, **fields})


CHANNELS = f"<|channel|>analysis<|message|>{THOUGHTS}<|end|><|start|>assistant<|channel|>final<|message|>"
_TYPED = _refused(
    400,
    "This model's maximum context length is {limit} tokens. However, your messages resulted in {asked} tokens. Please "
    "reduce the length of the messages.",
    param="messages",
    code="context_length_exceeded",
)
OPENAI = Wire("OpenAI chat", fields={"thinking_tokens": 5}, too_long=_TYPED)
RESPONSES = Wire(
    "OpenAI responses",
    fields={"thinking_tokens": 5, "thoughts": THOUGHTS, "commentary": "I'll look through the passages."},
    cut="max_output_tokens",
    too_long=_refused(
        400,
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        param="input",
        code="context_length_exceeded",
    ),
)
AZURE = Wire("Azure OpenAI", fields={"dress": _azure}, too_long=_TYPED)
ANTHROPIC = Wire(
    "Anthropic",
    fields={"thinking_tokens": 5, "thoughts": THOUGHTS},
    cut="max_tokens",
    stopped="refusal",
    too_long=_refused(400, "prompt is too long: {asked} tokens > {limit} maximum"),
)
GEMINI = Wire(
    "Gemini",
    fields={"thinking_tokens": 5, "thoughts": THOUGHTS},
    cut="MAX_TOKENS",
    stopped="SAFETY",
    too_long=_refused(
        400,
        "The input token count ({asked}) exceeds the maximum number of tokens allowed ({limit}).",
        code=400,
        status="INVALID_ARGUMENT",
    ),
)
BEDROCK = Wire(
    "Bedrock Converse",
    fields={"thinking_tokens": 5, "thoughts": THOUGHTS},
    cut="max_tokens",
    stopped="guardrail_intervened",
    too_long=_refused(
        400,
        "The model returned the following errors: Input is too long for requested model.",
        type="ValidationException",
    ),
)
MISTRAL = Wire(
    "Mistral",
    fields={"dress": _mistral, "thoughts": THOUGHTS},
    stopped="error",
    too_long=_refused(
        400,
        "Prompt contains {asked} tokens and 0 draft tokens, too large for model with {limit} maximum context length",
        code="3051",
    ),
)
NO_THOUGHTS = replace(MISTRAL, fields={"dress": _mistral})  # LlamaIndex's clients take none of Mistral's
XAI = Wire(
    "xAI",
    fields={"dress": _xai, "thinking_tokens": 5, "thoughts": THOUGHTS},
    too_long=_refused(
        400, "This model's maximum prompt length is {limit} but the request contains {asked} tokens.", code="400"
    ),
)
VLLM = Wire(
    "vLLM",
    before=CHANNELS,
    fields={"dress": _so_far},
    stopped="abort",
    too_long=_refused(
        400,
        "This model's maximum context length is {limit} tokens. However, your request has {asked} input tokens. Please "
        "reduce the length of the input messages.",
        type="BadRequestError",
        code=400,
    ),
)
LLAMA_CPP = Wire(
    "llama.cpp",
    before=f"{THOUGHTS}\n</think>\n\n",
    fields={"dress": _timed},
    stopped=None,
    too_long=_refused(
        400,
        "request ({asked} tokens) exceeds the available context size ({limit} tokens), try increasing it",
        type="exceed_context_size_error",
        code=400,
    ),
)
UNCACHED = {"cached_tokens": 0}  # of what comes from a cache, the protocol says nothing
THINKING = {"thinking_tokens": 5, "thoughts": THOUGHTS}
OLLAMA = Wire("Ollama", fields={**UNCACHED, **THINKING, "dress": _evaluated}, stopped=None)
OLD_OLLAMA = Wire(
    "Ollama, older", before=f"<think>{THOUGHTS}</think>\n\n", fields={**UNCACHED, "dress": _warm}, stopped=None
)
PIPELINE = Wire("transformers", stopped=None, cut="")
ROUTER = Wire(
    "OpenRouter, LiteLLM",
    fields={"dress": _priced, "thinking_tokens": 5, "thoughts": THOUGHTS},
    stopped="error",
    too_long=_refused(
        400,
        "This endpoint's maximum context length is {limit} tokens. However, you requested about {asked} tokens "
        "({asked} of text input). Please reduce the length of either one, or use context compression.",
        code=400,
    ),
)


# The clients


Make = Callable[[Any, LoopbackServer], Any]


def _version(package: str) -> str:
    """Return the version of a distribution; empty if it is not here."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


@dataclass(frozen=True)
class Row:
    """A client of a host for a wire, and what is seen of it.

    Attributes:
        wire: The wire.
        host: The host.
        package: The distribution that the client is in.
        kind: The client, as `pkgutil.resolve_name` takes it.
        make: Makes the client for a server, from its class.
        unusual: What is seen of a cell, or of one in some mode, such as "verdict stream", where it is not the usual.
    """

    wire: Wire
    host: str
    package: str
    kind: str
    make: Make
    unusual: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The row in words."""
        return f"{self.wire.name} {self.host} {self.kind.partition(':')[2]}"

    @property
    def lacks(self) -> str | None:
        """The package that is missing here; None if the row can be run."""
        needed = [self.package, *(["torch"] if self.wire is PIPELINE else [])]
        return next((package for package in needed if not _version(package)), None)

    @property
    def client(self) -> str:
        """The client and the version of its package."""
        return f"`{self.kind.partition(':')[2]}` of {self.package} {_version(self.package)}".rstrip()

    def expected(self, cell: str, mode: str) -> str:
        """Return what is to be seen of a cell in a mode."""
        if cell == "hang-up" and mode not in STREAMS:
            return NO_STREAM
        return self.unusual.get(f"{cell} {mode}") or self.unusual.get(cell) or USUAL[cell]


def _openai(kind: Any, server: LoopbackServer, **options: Any) -> Any:
    options = {"model": "m", "stream_usage": True, **options}
    return kind(base_url=server.openai_url, api_key=KEY, max_retries=0, **options)


def _openai_like(kind: Any, server: LoopbackServer, **options: Any) -> Any:
    options = {"model": "m", "is_chat_model": True, "context_window": 1_000_000, **options}
    asked = {"stream_options": {"include_usage": True}}
    return kind(api_base=server.openai_url, api_key=KEY, max_retries=0, additional_kwargs=asked, **options)


def _chat_azure(kind: Any, server: LoopbackServer) -> Any:
    about = {"azure_endpoint": server.url, "azure_deployment": "m", "api_version": "2024-10-21"}
    return kind(**about, api_key=KEY, max_retries=0, stream_usage=True)


def _azure_openai(kind: Any, server: LoopbackServer) -> Any:
    about = {"azure_endpoint": server.url, "engine": "m", "api_version": "2024-10-21", "model": "gpt-4o-mini"}
    asked = {"stream_options": {"include_usage": True}}
    return kind(**about, api_key=KEY, max_retries=0, additional_kwargs=asked)


def _chat_gemini(kind: Any, server: LoopbackServer) -> Any:
    return kind(base_url=server.url, google_api_key=KEY, model="m", max_retries=1, include_thoughts=True)


def _google_genai(kind: Any, server: LoopbackServer) -> Any:
    window = {"max_tokens": 256, "context_window": 1_000_000}  # it asks the server otherwise
    return kind(model="m", api_key=KEY, http_options={"base_url": server.url}, max_retries=0, **window)


AWS = {"region_name": "us-east-1", "aws_access_key_id": KEY, "aws_secret_access_key": KEY}


def _chat_bedrock(kind: Any, server: LoopbackServer) -> Any:
    return kind(model="m", provider="anthropic", base_model="m", endpoint_url=server.url, **AWS)


def _bedrock(kind: Any, server: LoopbackServer) -> Any:
    model = "anthropic.claude-sonnet-4-20250514-v1:0"
    config = resolve_name("botocore.config:Config")(retries={"max_attempts": 0})
    return kind(model=model, max_retries=1, endpoint_url=server.url, botocore_config=config, **AWS)


def _ollama(kind: Any, server: LoopbackServer, **options: Any) -> Any:
    return kind(model="m", base_url=server.url, **options)


LANGCHAIN_OPENAI = ("langchain", "langchain-openai", "langchain_openai:ChatOpenAI", _openai)
OPENAI_LIKE = ("llamaindex", "llama-index-llms-openai-like", "llama_index.llms.openai_like:OpenAILike", _openai_like)


CHAT_OLLAMA = ("langchain", "langchain-ollama", "langchain_ollama:ChatOllama", partial(_ollama, num_ctx=32_000))
OLLAMA_LLM = (
    "llamaindex",
    "llama-index-llms-ollama",
    "llama_index.llms.ollama:Ollama",
    partial(_ollama, context_window=32_000),
)


def _any_of_openai(wire: Wire, **unusual: Mapping[str, str]) -> list[Row]:
    """Return how a server with OpenAI's protocol is reached in both hosts."""
    return [
        Row(wire, *LANGCHAIN_OPENAI, unusual.get("langchain", {})),
        Row(wire, *OPENAI_LIKE, unusual.get("llamaindex", {})),
    ]


def _pipeline(kind: Any, server: LoopbackServer) -> Any:
    """Make a pipeline of transformers over a model that writes what the server would say, and books it there."""
    torch, transformers, tokenizers = map(resolve_name, ("torch", "transformers", "tokenizers"))
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: number for number, letter in enumerate([*letters, "<end>"])}
    bytewise = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    bytewise.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    bytewise.decoder = tokenizers.decoders.ByteLevel()
    ends = dict.fromkeys(("eos_token", "pad_token"), "<end>")
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=bytewise, **ends)

    def generate(input_ids: Any, streamer: Any = None, **_: Any) -> Any:
        request = Request("openai", "m", tokenizer.decode(input_ids[0]), streamer is not None, {}, {})
        server.book.append(entry := Entry(request))
        chosen = server.answer(request)
        reply = chosen if isinstance(chosen, Reply) else Reply(chosen)
        written = [input_ids]
        for piece in reply.cut():
            written.append(torch.tensor([tokenizer.encode(piece)]))
            time.sleep(reply.delay)
            entry.sent += 1
        for ids in written if streamer else ():
            streamer.put(ids[0].cpu())
        if streamer:
            streamer.end()
        entry.done = True
        return torch.cat(written, dim=1)

    sizes = {"n_positions": 64, "n_embd": 8, "n_layer": 1, "n_head": 1}
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=len(vocabulary), **sizes))
    model.generate = generate
    return kind(pipeline=transformers.pipeline("text-generation", model=model, tokenizer=tokenizer))


FALLS_BACK = {  # LiteLLM has its own way with `error`
    "ending": "an `error` is an empty reply, `stop`",
    **{f"ending {mode}": "an `error` is LiteLLM's `MidStreamFallbackError`" for mode in STREAMS},
}
HALVED = {"window": "halved until it fits"}  # the error names no limit
CUT = "cut by the server, which is said"
SHOWN = "its reasoning is shown, and no decline behind it is seen"
IN_STREAMS = {f"verdict {mode}": SHOWN for mode in STREAMS} | {f"hang-up {mode}": "read to its end" for mode in STREAMS}

ROWS: list[Row] = [
    Row(OPENAI, *LANGCHAIN_OPENAI),
    Row(
        OPENAI,
        "llamaindex",
        "llama-index-llms-openai",
        "llama_index.llms.openai:OpenAI",
        partial(_openai_like, model="gpt-4o-mini"),
    ),
    Row(RESPONSES, *LANGCHAIN_OPENAI[:3], partial(_openai, use_responses_api=True), HALVED),
    Row(
        RESPONSES,
        "llamaindex",
        "llama-index-llms-openai",
        "llama_index.llms.openai:OpenAIResponses",
        lambda kind, server: kind(model="gpt-4o-mini", api_base=server.openai_url, api_key=KEY, max_retries=0),
        HALVED,
    ),
    Row(AZURE, "langchain", "langchain-openai", "langchain_openai:AzureChatOpenAI", _chat_azure),
    Row(
        AZURE,
        "llamaindex",
        "llama-index-llms-azure-openai",
        "llama_index.llms.azure_openai:AzureOpenAI",
        _azure_openai,
    ),
    Row(
        ANTHROPIC,
        "langchain",
        "langchain-anthropic",
        "langchain_anthropic:ChatAnthropic",
        lambda kind, server: kind(model="claude-sonnet-4-5", base_url=server.url, api_key=KEY, max_retries=0),
    ),
    Row(
        ANTHROPIC,
        "llamaindex",
        "llama-index-llms-anthropic",
        "llama_index.llms.anthropic:Anthropic",
        lambda kind, server: kind(model="claude-sonnet-4-5", base_url=server.url, api_key=KEY, max_retries=0),
    ),
    Row(
        GEMINI,
        "langchain",
        "langchain-google-genai",
        "langchain_google_genai:ChatGoogleGenerativeAI",
        _chat_gemini,
    ),
    Row(
        GEMINI,
        "llamaindex",
        "llama-index-llms-google-genai",
        "llama_index.llms.google_genai:GoogleGenAI",
        _google_genai,
        {f"ending {mode}": "a cut reply is a `NoReplyError`" for mode in MODES if mode not in STREAMS},
    ),
    Row(
        BEDROCK,
        "langchain",
        "langchain-aws",
        "langchain_aws:ChatBedrockConverse",
        _chat_bedrock,
        {**HALVED, "hang-up": "read to its end"},
    ),
    Row(
        BEDROCK,
        "llamaindex",
        "llama-index-llms-bedrock-converse",
        "llama_index.llms.bedrock_converse:BedrockConverse",
        _bedrock,
        {
            **HALVED,
            "hang-up astream": "read to its end",
            **{f"ending {mode}": "not told" for mode in STREAMS},
        },
    ),
    Row(MISTRAL, *LANGCHAIN_OPENAI),
    Row(NO_THOUGHTS, *OPENAI_LIKE),
    Row(
        MISTRAL,
        "langchain",
        "langchain-mistralai",
        "langchain_mistralai:ChatMistralAI",
        lambda kind, server: kind(model="m", base_url=server.openai_url, api_key=KEY, max_retries=0),
        {"usage": "exact but for cached tokens"},
    ),
    Row(
        NO_THOUGHTS,
        "llamaindex",
        "llama-index-llms-mistralai",
        "llama_index.llms.mistralai:MistralAI",
        lambda kind, server: kind(model="mistral-small-latest", endpoint=server.url, api_key=KEY, max_retries=0),
    ),
    *_any_of_openai(XAI),
    Row(
        XAI,
        "langchain",
        "langchain-xai",
        "langchain_xai:ChatXAI",
        lambda kind, server: kind(model="m", xai_api_base=server.openai_url, api_key=KEY, max_retries=0),
    ),
    *_any_of_openai(VLLM),
    *_any_of_openai(LLAMA_CPP, langchain=IN_STREAMS, llamaindex=IN_STREAMS),
    Row(OLLAMA, *CHAT_OLLAMA, {"window": CUT, **{f"window {mode}": "not told" for mode in STREAMS}}),
    Row(OLLAMA, *OLLAMA_LLM, {"window": CUT}),
    Row(OLD_OLLAMA, *CHAT_OLLAMA, {"usage": "estimated", "window": "not told"}),
    Row(OLD_OLLAMA, *OLLAMA_LLM, {"usage": "estimated", "window": "not told"}),
    Row(
        PIPELINE,
        "langchain",
        "langchain-huggingface",
        "langchain_huggingface:HuggingFacePipeline",
        _pipeline,
        {"hang-up": "read to its end", "usage": "estimated", "ending": "not told", "window": "not told"},
    ),
    *_any_of_openai(ROUTER),
    Row(
        ROUTER,
        "langchain",
        "langchain-litellm",
        "langchain_litellm:ChatLiteLLM",
        lambda kind, server: kind(model="openai/m", api_base=server.openai_url, api_key=KEY, max_retries=0),
        FALLS_BACK,
    ),
]


# What is seen


@dataclass
class Look:
    """A row in a mode, over a server of its own.

    Attributes:
        row: The row.
        mode: The mode.
        server: The server.
    """

    row: Row
    mode: str
    server: LoopbackServer

    def ask(self, *replies: Reply, **fields: Any) -> Any:
        """Ask one question; the server gives these replies in turn."""
        self.server.book.clear()
        self.server.answer = lambda request: replies[min(len(self.server.book), len(replies)) - 1]
        model = self.row.make(resolve_name(self.row.kind), self.server)
        return over_models(self.row.host, self.mode, model, model, **fields).now()

    def verdict(self) -> str:
        """Say whether a decline escalates, and what is shown of an answer."""
        wire, shown = self.row.wire, []
        for replies, expected in (
            ((REFUSAL, ANSWER), ("long_context", True, "sentinel")),
            ((ANSWER,), ("rag", True, "answered")),
        ):
            told = self.ask(*map(wire.reply, replies))
            route, answer, answerable, signal = told.verdict
            shown.append("".join(told.pieces) if self.mode in STREAMS else answer)
            if "</think>" in shown[-1]:
                return SHOWN
            if ((route, answerable, signal), len(self.server.book)) != (expected, len(replies)):
                return f"{replies[0]}: {told.verdict}"
        return "clean" if shown == [ANSWER, ANSWER] else f"shown: {shown}"

    def hang_up(self) -> str:
        """Say whether the server sees the client leave."""
        if self.mode not in STREAMS:
            return NO_STREAM
        wire = self.row.wire
        needed = len(wire.reply(REFUSAL).cut())
        rambling = wire.reply(f"{REFUSAL} because the passages tell {'of other meetings ' * 9}", delay=SLOW)
        gc.disable()  # whether a stream that nobody closes is collected is a matter of luck
        try:
            held = replace(rambling, hold_after=needed + MOST_AFTER, hold_for=AT_MOST)
            self.ask(held, wire.reply(ANSWER, delay=2 * SLOW))
            self._wait_for(self.server.book[0])
        finally:
            gc.collect()
            gc.enable()
        return "hung up" if self.server.book[0].left else "read to its end"

    @staticmethod
    def _wait_for(entry: Entry) -> None:
        end = time.monotonic() + 2 * AT_MOST
        while not (entry.left or entry.done) and time.monotonic() < end:
            time.sleep(SLOW)

    def usage(self) -> str:
        """Say how the counts compare with the server's book."""
        wire = self.row.wire
        told = self.ask(wire.reply(ANSWER, **{"cached_tokens": 3, **wire.fields}))
        self.server.settle()
        said, booked = told.usage["rag"], counts(self.server.book[0])
        if told.usage["estimated"]:
            return "estimated"
        wrong = [f"{said[name]} {name} of {booked[name]}" for name in booked if said[name] != booked[name]]
        if len(wrong) == 1 and said["cached_tokens"] == 0 < booked["cached_tokens"]:
            return "exact but for cached tokens"
        return ", ".join(wrong).replace("_", " ") or "exact"

    def ending(self) -> str:
        """Describe what is seen of a reply that was cut off, and of one that never came."""
        wire = self.row.wire
        word = wire.stopped or wire.cut
        cut, none = self._told(CUT_OFF, wire.cut), self._told("", word)
        if none == f"NoReplyError ({word})" and cut == f"{CUT_OFF} ({wire.cut})":
            return "said"
        if none == f"NoReplyError ({word})" and cut == f"NoReplyError ({wire.cut})":
            return "a cut reply is a `NoReplyError`"
        if (cut, none) == (f"{CUT_OFF} (None)", f"{ANSWER} (None)"):
            return "not told"
        if cut == f"{CUT_OFF} ({wire.cut})":
            return f"an `{word}` is {'an empty reply, `stop`' if none == f'{ANSWER} (stop)' else none}"
        return f"{cut}; {none}"

    def _told(self, text: str, finish: str) -> str:
        try:
            told = self.ask(self.row.wire.reply(text, finish=finish or None), self.row.wire.reply(ANSWER))
        except NoReplyError as error:
            return f"NoReplyError ({error.finish_reason})"
        except Exception as error:  # noqa: BLE001 (whatever the client raises)
            whose = type(error).__module__.split(".")[0].replace("litellm", "LiteLLM")
            return f"{whose}'s `{type(error).__name__}`"
        return f"{told.answer.rpartition('</think>')[2].strip()} ({told.finish_reason})"

    def window(self) -> str:
        """Say what follows when the documents do not fit the window."""
        wire = self.row.wire
        self.server.book.clear()

        def answer(request: Request) -> Reply:
            asked = len(request.prompt.split())
            return wire.too_long(WINDOW, asked) if wire.too_long and asked > WINDOW else wire.reply(ANSWER)

        self.server.answer = answer
        model = self.row.make(resolve_name(self.row.kind), self.server)
        try:
            told = over_models(self.row.host, self.mode, model, model, whole=LONG, start="long_context").now()
        except Exception as error:  # noqa: BLE001 (whatever the client raises)
            return type(error).__name__
        sizes = [len(entry.request.prompt.split()) for entry in self.server.book]
        trimmed = (told.labels[0] or {}).get("trimmed")
        if not told.answer.endswith(ANSWER) or (len(sizes) > 1 and (trimmed is not True or sizes[-1] > WINDOW)):
            return f"{told.verdict}, {told.labels}, {sizes}"
        if len(sizes) == 1:
            return "cut by the server, which is said" if trimmed == "provider" else "not told"
        return "read again with less" if len(sizes) == 2 else "halved until it fits"


def seen(row: Row, cell: str, mode: str) -> str:
    """Return what is seen of a cell."""
    with LoopbackServer(lambda _: ANSWER) as server:
        look = Look(row, mode, server)
        found = getattr(look, cell.replace("-", "_"))()
    return str(found)
