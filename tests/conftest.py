"""What tests share: no property has a deadline; what those over real wires ask for by `pytestmark`."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import certifi
import hypothesis
import pytest

hypothesis.settings.register_profile("untimed", deadline=None)  # how fast it is here is no law
hypothesis.settings.load_profile("untimed")


@pytest.fixture(scope="module")
def one_certificate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let clients, which nothing here asks for TLS, load one certificate in place of all: half of the time here."""
    path, end = tmp_path_factory.mktemp("certificates") / "one.pem", "-----END CERTIFICATE-----\n"
    path.write_text(certifi.contents().partition(end)[0] + end)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(path))
        yield


@pytest.fixture(scope="module")
def frozen() -> Iterator[None]:
    """Keep what was imported out of the collections after each test: they take long otherwise."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
