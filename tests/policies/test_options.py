"""The options that a policy sets are those that run and are shown; the user's own are never overridden."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.runnables import ConfigurableField

from langchain_parts import QUESTION, ScriptedModel, a_chain
from llamaindex_parts import ScriptedLLM, an_engine
from selfroute.calls.settings import Settings
from selfroute.errors import ConfigurationError
from selfroute.policies import Budget, Never
from selfroute.policies.case import Case, Ruling
from selfroute.policies.policy import Policy

OWN = {"answerability": "structured", "doubt_below": 30, "stop_below": 5, "sections": 300}


class Setting(Policy):
    """A policy that sets options of its own."""

    name = "mine"

    def __init__(self, **options: Any) -> None:
        self.options = options

    def __call__(self, case: Case) -> Ruling:
        return Ruling(go=True, by="mine")


GRADED = Setting(answerability="graded", doubt_below=70, stop_below=10, sections=800)

BUILDS: dict[str, Callable[..., Any]] = {
    "core": Settings,
    "langchain": a_chain,
    "llamaindex": an_engine,
}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a bound": ({"answerability": "graded", "doubt_below": 30}, "you set doubt_below=30, but the policy 'mine'"),
    "another form": ({"answerability": "structured"}, "sets answerability='graded': leave out answerability, or the"),
    "a number of tokens": (
        {"sections": 300},
        "but the policy 'mine' (escalation) sets sections=800: leave out",
    ),
    "several": (OWN, "leave out answerability, doubt_below, stop_below, sections, or the policy"),
    "several numbers": ({"sections": (300, 900)}, "you set sections=(300, 900), but"),
}


@pytest.mark.parametrize("policy", [GRADED, GRADED & Budget(tokens=9), Never() | GRADED], ids=["alone", "and", "or"])
@pytest.mark.parametrize("kind", REFUSED)
def test_options_that_the_user_set_otherwise_are_refused_with_both_values(kind: str, policy: Policy) -> None:
    options, told = REFUSED[kind]
    with pytest.raises(ConfigurationError) as refused:
        Settings(**options, escalation=policy)
    assert told.replace("'mine'", repr(policy.name)) in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("where", ["langchain", "llamaindex"])
def test_the_constructor_refuses_them(where: str) -> None:
    for name, own in OWN.items():
        asked = {"answerability": "graded"} if name.endswith("below") else {}
        with pytest.raises(ConfigurationError, match=f"you set {name}="):
            BUILDS[where](**{**asked, name: own}, escalation=Setting(**{**asked, **GRADED.options}))


@pytest.mark.parametrize("where", BUILDS)
def test_options_that_agree_with_the_policy_are_taken(where: str) -> None:
    options = {"answerability": "graded", "doubt_below": 70, "stop_below": 10}
    BUILDS[where](**options, escalation=Setting(**options))


@pytest.mark.parametrize("options", [{"doubt": 3}, {"sections": -1}, {"answerability": "json"}])
def test_what_a_policy_sets_is_checked_too(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        Settings(escalation=Setting(**options))


async def test_options_that_are_set_later_are_refused_by_the_next_call() -> None:
    chain = a_chain(escalation=GRADED)
    engine = an_engine(escalation=Setting(answerability="graded", doubt_below=70))
    synthesizer = copy.copy(engine)._response_synthesizer
    synthesizer.doubt_below = 30
    later = chain.configurable_fields(sections=ConfigurableField(id="sections"))
    asked: list[Callable[[], Any]] = [
        lambda: chain.model_copy(update={"sections": 300}).invoke(QUESTION),
        lambda: later.invoke(QUESTION, {"configurable": {"sections": 300}}),
        lambda: engine.query(QUESTION),
    ]
    for ask in asked:
        with pytest.raises(ConfigurationError, match="you set"):
            ask()
    assert later.invoke(QUESTION, {"configurable": {"sections": 800}})["answer"] == chain.invoke(QUESTION)["answer"]


def test_the_graph_shows_the_sections_of_a_policy() -> None:
    steps = [node.name for node in a_chain(escalation=GRADED).get_graph().nodes.values()]
    assert "sections" in steps
    plain = [node.name for node in a_chain(sections=800).get_graph().nodes.values()]
    assert steps == plain


def test_a_policy_s_form_of_output_is_declared_as_the_user_s() -> None:
    own, set_by = a_chain(citations=True), a_chain(escalation=Setting(citations=True))
    assert set_by.OutputType is own.OutputType


class Twin(ScriptedLLM):
    """A model that is equal to others of its kind."""

    __hash__ = ScriptedLLM.__hash__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Twin)


@pytest.mark.parametrize("build", [a_chain, an_engine])
def test_two_equal_models_are_priced_apart_and_one_model_is_priced_once(build: Callable[..., Any]) -> None:
    kind = ScriptedModel if build is a_chain else Twin
    one, other = kind(label="own"), kind(label="own")
    assert one == other
    fields = {"priced_as": "openai:gpt-4o", "escalation": Budget(usd=1)}
    for second in (None, one):
        build(llm=one, long_context_llm=second, **fields)
    with pytest.raises(ConfigurationError, match="price of long_context_llm"):
        build(llm=one, long_context_llm=other, **fields)
