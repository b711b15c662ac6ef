"""The tools and checks of an engine, and the prompts of its synthesizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llama_index.core.llms import LLM, ChatMessage
from llama_index.core.memory import BaseMemory, ChatMemoryBuffer
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import QueryBundle
from typing_extensions import override

from llamaindex_selfroute.arguments import SynthesizerFields, check_memory, check_model
from selfroute.agents.tools import MOST_TOKENS, check_most
from selfroute.arguments import refuse_unknown
from selfroute.errors import ConfigurationError, UnknownOptionError
from selfroute.prompts import CHECK_QUESTION

if TYPE_CHECKING:
    from llama_index.core.tools import FunctionTool

    from llamaindex_selfroute.chat import SelfRouteChatEngine
    from llamaindex_selfroute.host import QueryCall
    from selfroute.checking import Findings

_CHAT_MODES = ("condense_plus_context", "context", "condense_question", "best")


class EngineMethods(RetrieverQueryEngine):
    """What an engine offers besides answering; its `_synthesizer` holds the prompts."""

    _synthesizer: Any

    def _call(self, question: str | QueryBundle) -> QueryCall:
        """Return a call that no synthesizer has begun, so it retrieves the nodes itself."""
        raise NotImplementedError

    def tools(self, *, max_tokens: int = MOST_TOKENS) -> list[FunctionTool]:
        """Return tools for agents that want to look themselves: `search`, `find` and `open`.

        They use this engine's retriever and documents, behind the same filters, and ask no model. `search` gives the
        nodes that are nearest to a query, `find` the sections of one document that share most with some words, and
        `open` a stretch of one document. The raw output has the same as plain data, with offsets and pages: `artifact`.

        Args:
            max_tokens: How many tokens an answer has at most.

        Raises:
            ConfigurationError: `max_tokens` is less than 100.
        """
        from llamaindex_selfroute.tools import tools_of  # noqa: PLC0415 - only where it is used

        return tools_of(self._call, max_tokens=check_most(max_tokens))

    def as_chat_engine(  # noqa: PLR0913 - LlamaIndex's arguments
        self,
        chat_mode: str = "condense_plus_context",
        llm: LLM | None = None,
        *,
        memory: BaseMemory | None = None,
        chat_history: list[ChatMessage] | None = None,
        condense_prompt: str | BasePromptTemplate | None = None,
        skip_condense: bool = False,
        **others: Any,
    ) -> SelfRouteChatEngine:
        """Return a chat engine for one conversation, instead of `index.as_chat_engine()`.

        The first message is asked as it is. A later one is reworded by the model, with the history, so that it can be
        understood alone. The engine then answers it, with its filters and options as they are at that time, also in
        `achat`, `stream_chat` and `astream_chat`, however `streaming` is set. A reply has the `metadata` of the
        engine's response; `sources[0].raw_input["query"]` is the question that was asked.

        The history keeps a message and its answer when the answer has been read to its end. It keeps no refusal: after
        a question that is not `answerable`, it keeps the message alone. An error, or a reader who closes the stream
        (which stops the model), leaves it as it was.

        Rewording is a call of the model that the response's `usage` and a ledger do not count.

        Args:
            chat_mode: `"context"` asks each message as it is; all other modes that look into documents are the same.
            llm: The model that rewords messages; the engine's if None.
            memory: Keeps the history; by default, as much of it as fits three quarters of the model's window.
            chat_history: The messages to begin with.
            condense_prompt: The prompt that rewords, with the variables `chat_history` and `question`.
            skip_condense: Whether to ask each message as it is.
            **others: None; each raises an error that says what stands for it.

        Raises:
            UnknownOptionError: There is no such option.
            ConfigurationError: The mode looks into no documents, or an argument is of the wrong kind.
        """
        from llamaindex_selfroute.chat import SelfRouteChatEngine  # noqa: PLC0415 - only where it is used

        if other := min(others, default=None):
            if other in SynthesizerFields.__annotations__ and other != "streaming":
                msg = f"{other} is an option of the engine: pass it to SelfRouteQueryEngine"
                raise UnknownOptionError(msg)
            refuse_unknown(other, known=("memory", "chat_history", "condense_prompt", "skip_condense"))
        if chat_mode not in _CHAT_MODES:
            modes = ", ".join(_CHAT_MODES)
            msg = f"chat_mode must be one of {modes}; to chat with an agent, give the agent engine.tools()"
            raise ConfigurationError(msg)
        llm = self._synthesizer.llm if llm is None else check_model("llm", llm)
        # LlamaIndex calls it deprecated; but Memory opens a database for each conversation, and nothing closes that.
        memory = ChatMemoryBuffer.from_defaults(llm=llm) if memory is None else check_memory(memory)
        if chat_history is not None:
            memory.set(chat_history)
        skips = skip_condense or chat_mode == "context"
        return SelfRouteChatEngine(self, llm=llm, memory=memory, condense_prompt=condense_prompt, skip_condense=skips)

    def warm_up(self) -> None:
        """Do once what would otherwise hold up the first question, for a tenth of a second; `check` does so, too.

        A service calls this when it starts. Nothing is retrieved, and no model is asked.
        """
        self._call(CHECK_QUESTION).warm_up()

    def check(self, question: str | QueryBundle = CHECK_QUESTION) -> Findings:
        """Try the parts of this engine on one question, without asking a model.

        This retrieves for the question, and reads the documents behind the nodes, as `query` would after a decline. So
        it costs what retrieving costs: an embedding, and what your own retriever or postprocessor asks a model.

        Args:
            question: The question; by default one that may find anything.

        Returns:
            A finding for each of `source`, `wall`, `document`, `window`, `prices` and `prompt`, which says what to do.
            Print them. Anything that fails on the way is a finding, too.

        Raises:
            InputError: The question is blank.
        """
        from selfroute import checking  # noqa: PLC0415 - only where it is used

        return checking.check(self._call(question))

    async def acheck(self, question: str | QueryBundle = CHECK_QUESTION) -> Findings:
        """The async twin of `check`."""
        from selfroute import checking  # noqa: PLC0415

        return await checking.acheck(self._call(question))

    @override
    def _get_prompts(self) -> dict[str, Any]:
        found: dict[str, Any] = self._synthesizer._get_prompts()  # noqa: SLF001 - as LlamaIndex does
        return found

    @override
    def update_prompts(self, prompts_dict: dict[str, Any]) -> None:
        """Update prompts. `get_prompts` lists each under two names; the one that was changed counts."""
        known = self.get_prompts()
        super().update_prompts(
            {name: one for name, one in prompts_dict.items() if name not in known or one != known[name]}
        )

    @override
    def _update_prompts(self, prompts_dict: dict[str, Any]) -> None:
        self._synthesizer._update_prompts(prompts_dict)  # noqa: SLF001
