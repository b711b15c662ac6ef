"""What the tests share that run through both hosts."""

from __future__ import annotations

import pytest
from llama_index.core.callbacks.base import BASE_TRACE_EVENT, global_stack_trace, global_stack_trace_ids


@pytest.fixture(autouse=True)
def _no_trace_of_another_test() -> None:
    """Begin with no open trace: LlamaIndex leaves one behind where a query ends in an error."""
    global_stack_trace.set([BASE_TRACE_EVENT])
    global_stack_trace_ids.set([])
