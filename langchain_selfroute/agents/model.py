"""The agent's model as the chain's: each step is asked through the agent."""

from __future__ import annotations

from typing import Any, NamedTuple

from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.base import RunnableBinding
from pydantic import BaseModel, Field
from typing_extensions import override

_INSTRUCTION = "\n\nAnswer the question from "
_WITH_TOOLS = f"\n\nIf one of your tools does what the question asks for, call it. Otherwise:{_INSTRUCTION}"


class Step(NamedTuple):
    """What the chain asks of the agent's model: the name of the step, its prompt, and the report or None for text."""

    name: str
    prompt: PromptValue
    report: type[BaseModel] | None


class AgentModel(RunnableBinding[Any, Any]):  # type: ignore[no-redef]
    """An agent's model, which is asked through the agent; its name, window and price are the model's own.

    It is one object for all steps, since they are priced as one model. The name of a call's run says its step.
    """

    ask: Any = Field(default=None, exclude=True)
    aask: Any = Field(default=None, exclude=True)
    report: type[BaseModel] | None = Field(default=None, exclude=True)

    def with_structured_output(self, schema: type[BaseModel], **_: Any) -> Runnable[Any, Any]:
        """Return this model, to be asked for a report, with which it replies as text."""
        return self.model_copy(update={"report": schema})

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        return self.ask(Step(str((config or {}).get("run_name")), input, self.report))

    @override
    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        return await self.aask(Step(str((config or {}).get("run_name")), input, self.report))


def mentioning_tools(content: Any) -> Any:
    """Return the content of a default prompt in which the instruction mentions the agent's tools."""
    if isinstance(content, list):
        return [{**one, "text": mentioning_tools(one["text"])} if one.get("type") == "text" else one for one in content]
    return _WITH_TOOLS.join(content.rsplit(_INSTRUCTION, 1))
