"""Keep `tools`, `check` and `warm_up` on what LangChain returns in place of a chain to which something is bound.

LangChain's classes hand attributes that they do not have on to the bare chain, and so lose a filter or a ledger.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from langchain_core.callbacks.manager import CallbackManagerForChainRun
from langchain_core.runnables import Runnable, RunnableBinding, RunnableConfig, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.config import ensure_config, get_callback_manager_for_config, merge_configs
from langchain_core.runnables.configurable import (
    DynamicRunnable,
    RunnableConfigurableAlternatives,
    RunnableConfigurableFields,
)
from langchain_core.runnables.utils import AnyConfigurableField, ConfigurableField

from langchain_selfroute.convert import config_within, unnamed
from langchain_selfroute.running import Running, recorded_findings
from selfroute import prompts
from selfroute.agents.tools import MOST_TOKENS, check_most
from selfroute.errors import ConfigurationError

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

    from selfroute.checking import Findings


class ChainMethods:
    """The methods of a chain, on the chain and on what stands in its place."""

    def _within(self, config: RunnableConfig | None) -> tuple[Any, RunnableConfig]:
        """Return the chain that a call with a config asks, and the config with all that is bound to the chain.

        Raises:
            ConfigurationError: The config chooses something else.
        """
        runnable: Any = self
        while isinstance(runnable, DynamicRunnable | RunnableBindingBase):
            if isinstance(runnable, DynamicRunnable):
                runnable, config = runnable.prepare(config)
            else:
                runnable, config = runnable.bound, config_within(runnable, config)
        if not isinstance(runnable, ChainMethods):
            msg = f"the config chooses a {type(runnable).__name__}, which has no documents to look into"
            raise ConfigurationError(msg)
        return runnable, merge_configs(config)

    def tools(self, *, max_tokens: int = MOST_TOKENS, config: RunnableConfig | None = None) -> list[BaseTool]:
        """Return tools for agents that want to look themselves: `search`, `find` and `open`.

        They use this chain's retriever and documents, behind the same filters, and ask no model. `search` gives the
        passages that are nearest to a query, `find` the sections of one document that share most with some words, and
        `open` a stretch of one document. The artifact of a message has the same as plain data, with offsets and pages.

        The name of a document opens nothing by itself: `find` and `open` read a document of which the retriever returns
        a passage, for the query that found it in a `search` of these tools, or else for the words or the name.

        Args:
            max_tokens: How many tokens an answer has at most.
            config: A config for all calls of the tools, added to what the chain and each call have.

        Raises:
            ConfigurationError: `max_tokens` is less than 100.
        """
        from langchain_selfroute.tools import tools_of  # noqa: PLC0415 - tools take long to import

        def asked(given: RunnableConfig) -> tuple[Any, RunnableConfig]:
            chain, within = self._within(merge_configs(config, given))
            return chain, unnamed(within)

        return tools_of(asked, max_tokens=check_most(max_tokens))

    def warm_up(self, config: RunnableConfig | None = None) -> None:
        """Do once what would otherwise hold up the first question, for a tenth of a second; `check` does so, too.

        A service calls this when it starts. Nothing is retrieved, and no model is asked.
        """
        chain, config = self._within(config)
        get_callback_manager_for_config(ensure_config())  # LangChain loads its tracers
        manager = CallbackManagerForChainRun.get_noop_manager()
        chain._call(prompts.CHECK_QUESTION, manager, config).warm_up()  # noqa: SLF001

    def check(
        self, question: str | Mapping[str, Any] = prompts.CHECK_QUESTION, config: RunnableConfig | None = None
    ) -> Findings:
        """Try the parts of this chain on one question, without asking a model.

        This retrieves for the question, and reads the documents behind the passages, as a call with this config would
        after a decline. So it costs what retrieving costs: an embedding, and what your own retriever asks a model.

        Args:
            question: The question, or all inputs; by default one that may find anything.
            config: The config, as for `invoke`.

        Returns:
            A finding for each of `source`, `wall`, `document`, `window`, `prices` and `prompt`, which says what to do.
            Print them. Anything that fails on the way is a finding, too.

        Raises:
            InputError: The question is blank.
        """
        from selfroute import checking  # noqa: PLC0415 - only where it is used

        chain, config = self._within(config)
        with Running("check", question, config) as run:
            call = chain._call(question, run.manager, run.config)  # noqa: SLF001
            return run.end(run.perform(lambda: checking.check(call)), recorded_findings)

    async def acheck(
        self, question: str | Mapping[str, Any] = prompts.CHECK_QUESTION, config: RunnableConfig | None = None
    ) -> Findings:
        """The async twin of `check`."""
        from selfroute import checking  # noqa: PLC0415

        chain, config = self._within(config)
        async with Running("check", question, config) as run:
            call = chain._call(question, run.manager, run.config)  # noqa: SLF001
            return await run.aend(await run.aperform(checking.acheck(call)), recorded_findings)

    def configurable_fields(self, **kwargs: AnyConfigurableField) -> Any:
        """Let the config of a call set fields."""
        made = super().configurable_fields(**kwargs)  # type: ignore[misc]
        return ConfigurableChain(default=made.default, fields=made.fields)

    def configurable_alternatives(
        self, which: ConfigurableField, *, default_key: str = "default", prefix_keys: bool = False, **kwargs: Any
    ) -> Any:
        """Let the config of a call choose another chain."""
        return AlternativeChains(
            which=which,
            default=self,
            alternatives=kwargs,
            default_key=default_key,
            prefix_keys=prefix_keys,
        )

    def with_types(self, *, input_type: Any = None, output_type: Any = None) -> Any:
        """Bind other types of the input and the output."""
        return _bound(super().with_types(input_type=input_type, output_type=output_type))  # type: ignore[misc]

    def with_listeners(self, **listeners: Any) -> Any:
        """Bind listeners to its runs."""
        return _bound(super().with_listeners(**listeners))  # type: ignore[misc]

    def with_alisteners(self, **listeners: Any) -> Any:
        """Bind async listeners to its runs."""
        return _bound(super().with_alisteners(**listeners))  # type: ignore[misc]

    def with_config(self, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Bind a config."""
        return _bound(super().with_config(config, **kwargs))  # type: ignore[misc]

    def bind(self, **kwargs: Any) -> Any:
        """Bind arguments of its models."""
        return _bound(super().bind(**kwargs))  # type: ignore[misc]

    def with_fallbacks(self, fallbacks: Sequence[Runnable[Any, Any]], **options: Any) -> Any:
        """Ask others where it fails."""
        made = super().with_fallbacks(fallbacks, **options)  # type: ignore[misc]
        return ChainWithFallbacks(**{name: getattr(made, name) for name in type(made).model_fields})


class BoundChain(ChainMethods, RunnableBinding[Any, Any]):  # type: ignore[no-redef, misc]
    """A chain to which a config or arguments of its models are bound."""

    def with_config(self, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Bind a config to what is bound already; LangChain would drop what was configured before."""
        merged = merge_configs(self.config, config, cast("RunnableConfig", kwargs))
        return self.model_copy(update={"config": merged})


def _bound(binding: Any) -> BoundChain:
    return BoundChain(**{name: getattr(binding, name) for name in type(binding).model_fields})


class ChainWithFallbacks(RunnableWithFallbacks[Any, Any]):
    """A chain with others that are asked where it fails; what hangs on one chain does not exist here."""

    def __getattr__(self, name: str) -> Any:
        if name in _OF_ONE_CHAIN:
            msg = f"{name} is of one chain, and this one has fallbacks: use the {name} of the chain itself"
            raise AttributeError(msg)
        return super().__getattr__(name)


class _Configurable(ChainMethods):
    config: RunnableConfig | None

    def with_config(self, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Bind a config to what is bound already, which LangChain would drop."""
        merged = merge_configs(self.config, config, cast("RunnableConfig", kwargs))
        return self.__class__(**{**self.__dict__, "config": merged})


class ConfigurableChain(_Configurable, RunnableConfigurableFields):  # type: ignore[type-arg]
    """A chain with fields that the config of a call sets."""


class AlternativeChains(_Configurable, RunnableConfigurableAlternatives):  # type: ignore[type-arg]
    """Chains of which the config of a call chooses one."""


_OF_ONE_CHAIN = frozenset({"tools", "check", "acheck", "warm_up"})
