"""What an agent with the middleware keeps in its state, and what one request tells the next middleware."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from langchain.agents.middleware import AgentState, ModelRequest, ModelResponse
from langchain.agents.middleware.types import PrivateStateAttr
from typing_extensions import NotRequired, TypedDict

from langchain_selfroute.chain import SelfRouteChain

OVER, AGENT = "over", "agent"
SPENT, IS_ROUTED = "selfroute_spent", "selfroute_is_routed"  # in the state of one request


class SelfRouteReport(TypedDict):
    """What is said of the latest routed answer in the agent's state; the keys are those of `SelfRouteOutput`."""

    route: str
    answerable: bool
    decision: Mapping[str, Any]
    usage: Mapping[str, Any]
    sources: Sequence[str]
    citations: NotRequired[Sequence[Mapping[str, Any]]]


class Turn(TypedDict):
    """What is kept of a question while its tools are called.

    Attributes:
        question: Which message it is.
        step: The step that called; "agent" if the question was handed back, "over" if the turn ends.
        usage: The usage so far.
    """

    question: Sequence[Any]
    step: str
    usage: Mapping[str, Any]


class SelfRouteState(AgentState[Any]):
    """The state of an agent with this middleware; the turns are those of each middleware, by its name."""

    selfroute: NotRequired[SelfRouteReport | None]
    selfroute_turns: NotRequired[Annotated[Mapping[str, Turn | None], PrivateStateAttr, operator.or_]]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a middleware reads, and how.

    Attributes:
        chain: The chain, without a model.
        name: The name of the middleware.
        hands_back: Whether the agent answers where the documents hold nothing.
        has_own_prompts: Whether the chain has prompts of the user's own.
    """

    chain: SelfRouteChain
    name: str
    hands_back: bool
    has_own_prompts: bool

    def updates(self, turn: Turn | None) -> dict[str, Any]:
        """Return what is kept of a question in the agent's state."""
        return {"selfroute_turns": {self.name: turn}}


class RoutedResponse(ModelResponse[Any]):
    """A response whose report is in the state."""


def turn_in(state: Any, name: str) -> Turn | None:
    """Return what is kept of the question in progress for the middleware of a name."""
    turns: Mapping[str, Turn | None] = (state or {}).get("selfroute_turns") or {}
    return turns.get(name)


def is_routed(request: ModelRequest[Any]) -> bool:
    """Return whether a request is a step of another middleware of this kind, which asks through this one."""
    return IS_ROUTED in (request.state or {})
