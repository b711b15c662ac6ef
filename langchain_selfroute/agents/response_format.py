"""Let the answer of an agent with a `response_format` say that the documents do not hold it.

Where the provider itself keeps to the schema, the model fills in the chain's report, in which the answer has the
agent's schema. Where the answer is the call of a tool, the model is given one more tool, which declines.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from langchain.agents.middleware import ModelRequest
from langchain.agents.structured_output import (
    AutoStrategy,
    ProviderStrategy,
    ProviderStrategyBinding,
    StructuredOutputValidationError,
    ToolStrategy,
)
from langchain_core.messages import AIMessage
from pydantic import BaseModel

from langchain_selfroute.internals import keeps_to_schemas
from selfroute.answerability import declines
from selfroute.answerability.structured import json_in

_NAMED = ("$defs", "definitions")
DECLINING = "not_in_the_documents"
"""The tool by which a model declines."""


class ResponseFormat:
    """How an agent wants its answers.

    Attributes:
        by_provider: Whether the provider keeps to the schema; otherwise the answer is the call of a tool.
    """

    def __init__(self, strategy: ProviderStrategy[Any] | ToolStrategy[Any], refusal: str) -> None:
        """Take the strategy of an agent, and the word that declines."""
        self._strategy, self._refusal = strategy, refusal
        self.by_provider = isinstance(strategy, ProviderStrategy)

    @classmethod
    def of(cls, request: ModelRequest[Any], refusal: str) -> ResponseFormat | None:
        """Return the format that a request asks for; None if it is text."""
        wanted = request.response_format
        if wanted is None:
            return None
        if isinstance(wanted, ProviderStrategy | ToolStrategy):
            return cls(wanted, refusal)
        schema = wanted.schema if isinstance(wanted, AutoStrategy) else wanted
        by_provider = keeps_to_schemas(request.model, request.tools)
        return cls(ProviderStrategy(schema) if by_provider else ToolStrategy(schema), refusal)

    def overrides(self, request: ModelRequest[Any], report: type[BaseModel] | None) -> Mapping[str, Any]:
        """Return what has to change in a request so that its model can decline.

        Args:
            request: The request.
            report: The report that the chain asks for; None if it asks for text.
        """
        if isinstance(self._strategy, ToolStrategy):
            return {"tools": [*request.tools, _DECLINING]}
        if report is None:
            return {}
        schema: dict[str, Any] = report.model_json_schema()
        own: dict[str, Any] = _moved(self._strategy.schema_spec.json_schema)
        named: dict[str, Any] = {key: own.pop(key) for key in _NAMED if key in own}
        about = schema["properties"]["answer"]["description"]
        schema["properties"]["answer"] = {"anyOf": [own, {"type": "null"}], "description": about}
        schema |= {"additionalProperties": False, **named}
        return {"response_format": ProviderStrategy(schema, strict=self._strategy.schema_spec.strict)}

    def parsed(self, answer: str, message: AIMessage) -> Any:
        """Return the answer as the agent's schema has it.

        Args:
            answer: The answer, in JSON.
            message: The reply that it is from.

        Raises:
            StructuredOutputValidationError: It does not fit the schema.
        """
        try:
            return self._parse(answer)
        except Exception as error:
            name = getattr(self._strategy.schema, "__name__", "response_format")
            raise StructuredOutputValidationError(name, error, message) from error

    def _parse(self, answer: str) -> Any:
        spec = cast("ProviderStrategy[Any]", self._strategy).schema_spec
        return ProviderStrategyBinding.from_schema_spec(spec).parse(AIMessage(answer))

    def report_in(self, text: str) -> Mapping[str, Any] | None:
        """Return the report that a reply is, with its answer in JSON; None if the reply is something else.

        A model may have filled in the agent's schema in place of the report. Then that is the answer, unless its
        texts decline.
        """
        found = json_in(text)
        if not isinstance(found, Mapping):
            return None
        if "answerable" not in found or not (found.get("answer") is None or self._fits(found["answer"])):
            if not self._fits(found):
                return None
            found = {"answerable": True, "answer": found}
        answer = found.get("answer")
        if answer is None or self.declines(answer):
            return {**found, "answer": None}
        return {**found, "answer": json.dumps(answer, ensure_ascii=False)}

    def declines(self, answer: Any) -> bool:
        """Return whether each text of an answer declines, as the chain judges the answer of a report."""
        verdicts = [declines(text, self._refusal) for text in _texts_in(answer) if text.strip()]
        return bool(verdicts) and all(verdicts)

    def _fits(self, value: Any) -> bool:
        schema = self._strategy.schema
        if isinstance(schema, dict):  # the agent does not validate these
            return isinstance(value, Mapping) and value.keys() >= set(schema.get("required", ()))
        try:
            self._parse(json.dumps(value))
        except Exception:  # noqa: BLE001 - schemas of several kinds have no error in common
            return False
        return True


def _moved(schema: Any) -> Any:
    """Return a copy of a schema that refers to itself where it stands within the report."""
    if isinstance(schema, list):
        return [_moved(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    moved = {key: _moved(value) for key, value in schema.items()}
    to = moved.get("$ref")
    if isinstance(to, str) and to.startswith("#") and not to.startswith(tuple(f"#/{name}/" for name in _NAMED)):
        moved["$ref"] = f"#/properties/answer/anyOf/0{to[1:]}"
    return moved


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | Sequence):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _texts_in(one)


_DECLINING = {
    "type": "function",
    "function": {
        "name": DECLINING,
        "description": "Say that the question cannot be answered from the text that was given with it.",
        "parameters": {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
    },
}
