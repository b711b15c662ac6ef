"""The examples in docstrings run."""

import doctest
import re
from textwrap import dedent
from types import ModuleType

import pytest

import selfroute.demo.reader
from langchain_selfroute import SelfRouteChain
from selfroute import answerability


def test_the_example_of_the_chain_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", str(SelfRouteChain.__doc__), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(dedent(block), {})  # noqa: S102


@pytest.mark.parametrize("module", [answerability, selfroute.demo.reader], ids=lambda module: module.__name__)
def test_the_examples_of_a_module_run(module: ModuleType) -> None:
    ran = doctest.testmod(module)
    assert ran.attempted
    assert not ran.failed
