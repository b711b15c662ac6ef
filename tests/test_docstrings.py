"""The examples in docstrings run."""

import doctest
import re
from textwrap import dedent
from types import ModuleType

import pytest

import selfroute.demo.reader
from langchain_selfroute import SelfRouteChain
from llamaindex_parts import recorded
from llamaindex_selfroute import SelfRouteDecisionEvent, SelfRouteQueryEngine, SelfRouteSynthesizer
from selfroute import answerability, notation, tokens
from selfroute.languages import language


@pytest.mark.parametrize("public", [SelfRouteChain, SelfRouteQueryEngine, SelfRouteSynthesizer, SelfRouteDecisionEvent])
def test_the_example_of_a_public_class_runs(public: type) -> None:
    blocks = re.findall(r"```python\n(.*?)```", str(public.__doc__), re.DOTALL)
    assert blocks
    with recorded():  # an event handler that an example adds goes with it
        for block in blocks:
            exec(dedent(block), {})  # noqa: S102


@pytest.mark.parametrize(
    "module", [answerability, notation, tokens, language, selfroute.demo.reader], ids=lambda module: module.__name__
)
def test_the_examples_of_a_module_run(module: ModuleType) -> None:
    ran = doctest.testmod(module)
    assert ran.attempted
    assert not ran.failed
