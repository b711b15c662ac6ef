"""The examples in docstrings run."""

import doctest
import re
from textwrap import dedent
from types import ModuleType

import pytest

import langchain_selfroute
import llamaindex_selfroute
import selfroute_workbench.demo.reader
from llamaindex_parts import recorded
from selfroute.answerability import gate
from selfroute.citations import citing
from selfroute.languages import language, notation, sentences
from selfroute.languages import words as tokens

PACKAGES = (langchain_selfroute, llamaindex_selfroute)
TYPES = {"SelfRouteInput", "SelfRouteOutput"}  # of what goes in and out, which nobody makes
PUBLIC = [getattr(package, name) for package in PACKAGES for name in package.__all__ if name not in TYPES]


@pytest.mark.parametrize("public", PUBLIC)
def test_the_example_of_a_public_class_runs(public: type) -> None:
    blocks = re.findall(r"```python\n(.*?)```", str(public.__doc__), re.DOTALL)
    assert blocks
    with recorded():  # an event handler that an example adds goes with it
        for block in blocks:
            exec(dedent(block), {})  # noqa: S102


@pytest.mark.parametrize(
    "module",
    [gate, notation, tokens, language, sentences, citing, selfroute_workbench.demo.reader],
    ids=lambda module: module.__name__,
)
def test_the_examples_of_a_module_run(module: ModuleType) -> None:
    ran = doctest.testmod(module)
    assert ran.attempted
    assert not ran.failed
