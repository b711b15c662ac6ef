"""What tests share: two lanes, a server, and what makes the whole run quicker."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator, Iterator

import certifi
import pytest

import lanes
from loopback import LoopbackServer

lanes.load_profile()
os.environ.setdefault("ANONYMIZED_TELEMETRY", "False")  # Chroma allows one setting in a process
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # there are processes for all processors: more threads only wait


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Run one process more than there are processors: each waits a third of its time, for a server or a program."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Generator[None, object, object]:
    """Make the cases of the lane that is asked for, and no others."""
    done = yield
    lanes.choose_cases(metafunc, fast="not matrix" in metafunc.config.option.markexpr)
    return done


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep what the tests import out of all garbage collections: the whole run takes a tenth longer otherwise."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _no_terminal() -> Iterator[None]:
    """Let commands print as wide as they do into a pipe."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COLUMNS", raising=False)
        yield


@pytest.fixture(autouse=True)
def _no_trace_of_another_test() -> None:
    """Begin with no open trace: LlamaIndex leaves one behind where a query ends in an error."""
    if callbacks := sys.modules.get("llama_index.core.callbacks.base"):
        callbacks.global_stack_trace.set([callbacks.BASE_TRACE_EVENT])
        callbacks.global_stack_trace_ids.set([])


@pytest.fixture(scope="session", autouse=True)
def _one_certificate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let clients, which nothing here asks for TLS, load one certificate in place of all: half of the time here."""
    path, end = tmp_path_factory.mktemp("certificates") / "one.pem", "-----END CERTIFICATE-----\n"
    path.write_text(certifi.contents().partition(end)[0] + end)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(path))
        yield


@pytest.fixture(scope="module")
def frozen() -> None:
    """Keep what was imported out of the collections after each test: they take long otherwise."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    """A server on loopback, which gives every model the same answer until a test says otherwise."""
    with LoopbackServer(lambda _: "Ms Okafor chaired it, as in May.") as started:
        yield started
    gc.collect()
