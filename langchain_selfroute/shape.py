"""How a chain looks from outside: its types, its graph, its prompts, and the tool that it becomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.graph import Graph
from langchain_core.runnables.utils import ConfigurableFieldSpec, get_unique_config_specs
from pydantic import BaseModel, Field, create_model
from typing_extensions import override

from langchain_selfroute.prompts.defaults import copied
from langchain_selfroute.retrieving import source_key_of
from langchain_selfroute.schema import SelfRouteInput, SelfRouteOutput, Uncited, graph_of, tool_fields

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool  # takes long to import


_QUESTION = "The question, understandable by itself"


class ChainShape(Runnable[str | Mapping[str, Any], SelfRouteOutput]):
    """What LangChain asks a chain of itself."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    @property
    @override
    def InputType(self) -> Any:
        # Only the dict: `as_tool` accepts no schema of a union.
        return SelfRouteInput

    @property
    @override
    def OutputType(self) -> Any:
        return SelfRouteOutput if self.citations else Uncited

    @property
    @override
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        models, supplied = (self.llm, self.long_context_llm), (self.documents, self.start)
        parts = (self.retriever, *models, *supplied, self.rag_prompt, self.long_context_prompt)
        return get_unique_config_specs(
            spec for part in parts if isinstance(part, Runnable) for spec in part.config_specs
        )

    @override
    def get_graph(self, config: RunnableConfig | None = None) -> Graph:
        start, end = self.get_input_schema(config), self.get_output_schema(config)
        source = self.documents if isinstance(self.documents, Runnable) else self.retriever
        ladder = self._plan().ladder("long_context" if self.start == "long_context" else "rag")
        steps: dict[str, Runnable[Any, Any]] = {"retrieve": self.retriever}
        for step in ladder:
            if step != "rag":
                steps.setdefault("read_documents", source)
            steps[step] = self._models[step]
        return graph_of(steps, start=start, end=end, chooses=self.start not in ("rag", "long_context"))

    @override
    def as_tool(
        self,
        args_schema: type[BaseModel] | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        arg_types: dict[str, type] | None = None,
    ) -> BaseTool:
        """Return a tool that gives an agent `answer`, `route`, `answerable` and `sources`, the names of what was read.

        With `citations=True` it also gives the citations. The artifact of its message has all keys of the result, but
        not the text of whole documents.
        """
        from langchain_core.tools import convert_runnable_to_tool  # noqa: PLC0415 - it takes long

        if args_schema is None and arg_types is None:
            args_schema = create_model(name or self.get_name(), input=(str, Field(description=_QUESTION)))
        tool = convert_runnable_to_tool(self, args_schema, name=name, description=description, arg_types=arg_types)
        return tool.model_copy(update=tool_fields(self, source_key_of(self.documents)))

    @override
    def get_prompts(self, config: RunnableConfig | None = None) -> list[BasePromptTemplate[Any]]:
        of_step = self._prompts(self._plan())
        own = (self.rag_prompt, self.long_context_prompt)
        shown = [one if one in own else copied(one) for one in (of_step["rag"], of_step["long_context"])]
        return [found for prompt in shown for found in prompt.get_prompts(config)]
