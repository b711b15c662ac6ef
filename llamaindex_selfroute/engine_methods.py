"""The tools and checks of an engine, and the prompts of its synthesizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import QueryBundle
from typing_extensions import override

from selfroute.agents.tools import MOST_TOKENS, check_most
from selfroute.prompts import CHECK_QUESTION

if TYPE_CHECKING:
    from llama_index.core.tools import FunctionTool

    from llamaindex_selfroute.host import QueryCall
    from selfroute.checking import Findings


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
