"""Models of both frameworks that fill in a form by calling a tool."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from llama_index.core.llms import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection

import langchain_parts
import llamaindex_parts
from selfroute.answerability.structured import json_in


class Reporting(langchain_parts.ScriptedModel):
    """Calls the tool that is bound to it where its script is JSON; writes all else as it stands."""

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **options)

    def _whole(self, call: Any, pieces: Any) -> ChatResult:
        message = super()._whole(call, pieces).generations[0].message
        fields = json_in(str(message.text))
        if isinstance(message, AIMessage) and fields is not None and "tools" in call.options:
            name = call.options["tools"][0]["function"]["name"]
            calls = [{"name": name, "args": fields, "id": "1"}]
            message = AIMessage("", tool_calls=calls, usage_metadata=message.usage_metadata)
        return ChatResult(generations=[ChatGeneration(message=message)])


class Calling(llamaindex_parts.ScriptedLLM, FunctionCallingLLM):
    """Calls the function that it is given where its script is JSON; writes all else as it stands."""

    @property
    def metadata(self) -> LLMMetadata:
        return super().metadata.model_copy(update={"is_function_calling_model": True})

    def _prepare_chat_with_tools(self, tools: Any, chat_history: Any = None, **options: Any) -> dict[str, Any]:
        return {"messages": chat_history, "tools": [tool.metadata.to_openai_tool() for tool in tools]}

    def get_tool_calls_from_response(self, response: Any, **_: Any) -> list[ToolSelection]:
        return response.message.additional_kwargs.get("tool_calls", [])

    def _whole(self, call: Any, pieces: Any) -> Any:
        reply = super()._whole(call, pieces)
        fields = json_in(reply.message.content or "")
        if fields is None:
            return reply
        calls = [ToolSelection(tool_id="1", tool_name=call.options["tools"][0]["function"]["name"], tool_kwargs=fields)]
        message = ChatMessage(role="assistant", content=None, additional_kwargs={"tool_calls": calls})
        return ChatResponse(message=message, raw=reply.raw, additional_kwargs=reply.additional_kwargs)
