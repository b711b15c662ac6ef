"""Measure what many questions take: one async process as in examples/bulk.py, and Ray as in examples/bulk_ray.py.

    python benchmarks/bulk.py [--questions 2000] [--at-once 64] [--actors 2] [--only process|ray] [--plot FILE.svg]

Both ask the same chain, over a hundred reports of 6,000 words in an embedded Chroma, through ChatOpenAI; the model is a
server on loopback that takes 50 ms (`--latency`), and declines 18 of 100 drafts. `--at-once` is for all actors
together. "asking" is from the first call to the last, without the start of processes. CPU seconds and memory are those
of all processes of the run, Ray's own among them, but not the server's. Memory is what no other process shares (USS).

Nothing leaves the machine. Without Ray (`pip install "ray[data]"`) only the one process is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

import bulk_pipeline

ROOT = Path(__file__).resolve().parent.parent
STEP = 1.0  # seconds between looks at the processes


@dataclass(frozen=True)
class Run:
    """What a run took.

    Attributes:
        name: What it was.
        seconds: From the start of the first process to the end of the last.
        asking: From the first call of the model to the last.
        calls: How many there were.
        cpu: CPU seconds of all processes.
        memory: Pairs of seconds and MiB.
    """

    name: str
    seconds: float
    asking: float
    calls: int
    cpu: float
    memory: list[tuple[float, float]]


def in_one_process(questions: Path, out: Path, at_once: int) -> None:
    """Answer a file as `examples/bulk.py` does."""
    spec = importlib.util.spec_from_file_location("example_bulk", ROOT / "examples" / "bulk.py")
    assert spec  # noqa: S101
    assert spec.loader  # noqa: S101
    bulk: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bulk)
    config = {"max_concurrency": at_once, "callbacks": [bulk.SelfRouteLedger()]}
    failures = asyncio.run(
        bulk.answer_all(bulk_pipeline.make_chain(), bulk.read_rows(questions), out=out, config=config)
    )
    sys.exit(failures)


def watch(root: psutil.Process) -> tuple[float, list[tuple[float, float]]]:
    """Return the CPU seconds that a process and its descendants take until it ends, and their memory over time."""
    began, cpu, memory = time.monotonic(), dict[tuple[int, float], float](), list[tuple[float, float]]()
    while root.is_running() and root.status() != psutil.STATUS_ZOMBIE:
        held = 0
        for process in [root, *root.children(recursive=True)]:
            with suppress(psutil.Error):  # it has just ended
                times = process.cpu_times()
                cpu[process.pid, process.create_time()] = times.user + times.system
                held += process.memory_full_info().uss
        memory.append((time.monotonic() - began, held / 2**20))
        time.sleep(STEP)
    return sum(cpu.values()), memory


def run(name: str, options: argparse.Namespace) -> Run:
    """Start the server, answer the questions, and return what that took."""
    processes = multiprocessing.get_context("spawn")
    pipe, theirs = processes.Pipe()
    server = processes.Process(target=bulk_pipeline.serve, args=(theirs, options.latency), daemon=True)
    server.start()
    url = pipe.recv()
    here = os.pathsep.join([str(ROOT), str(ROOT / "benchmarks"), os.environ.get("PYTHONPATH", "")])
    told = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": url, "PYTHONPATH": here, "ANONYMIZED_TELEMETRY": "False"}
    with tempfile.TemporaryDirectory() as folder:
        questions, out = Path(folder, "questions.jsonl"), Path(folder, "answers.jsonl")
        with questions.open("w") as file:
            for number in range(options.questions):
                file.write(json.dumps({"id": number, "question": bulk_pipeline.question(number)}) + "\n")
        if name == "process":
            command = [__file__, "--answer", questions, out, "--at-once", options.at_once]
        else:
            out = Path(folder, "out", "answers.jsonl")
            command = [ROOT / "examples" / "bulk_ray.py", questions, "--out", out.parent, "--actors", options.actors]
            command += ["--at-once", options.at_once // options.actors, "--chain", "bulk_pipeline:make_chain"]
        began = time.monotonic()
        with Path(folder, "log").open("w+") as log:
            started = subprocess.Popen(
                [sys.executable, *map(str, command)], env={**os.environ, **told}, stdout=log, stderr=log
            )
            cpu, memory = watch(psutil.Process(started.pid))
            if started.wait():
                log.seek(0)
                sys.exit(log.read()[-2_000:])
        seconds = time.monotonic() - began
        with out.open() as file:
            answered = sum(1 for _ in file)
        if answered != options.questions:
            sys.exit(f"{answered} answers to {options.questions} questions")
    pipe.send(None)
    calls, first, last = pipe.recv()
    server.join()
    return Run(name, seconds, last - first, calls, cpu, memory)


def table(runs: list[Run], questions: int) -> list[str]:
    """Format the runs, and what the second took in relation to the first."""
    rows = {
        "seconds": [one.seconds for one in runs],
        "seconds of asking": [one.asking for one in runs],
        "questions a second, of asking": [questions / one.asking for one in runs],
        "calls of the model": [one.calls for one in runs],
        "CPU ms a question": [1_000 * one.cpu / questions for one in runs],
        "MiB at a tenth of the run": [one.memory[len(one.memory) // 10][1] for one in runs],
        "MiB at most": [max(held for _, held in one.memory) for one in runs],
        "MiB at the end": [one.memory[-1][1] for one in runs],
    }
    lines = [f"{f'{questions:,} questions':<32}" + "".join(f"{one.name:>12}" for one in runs)]
    lines[0] += f"{'ratio':>8}" if len(runs) > 1 else ""
    for name, values in rows.items():
        ratio = f"{values[1] / values[0]:>8.2f}" if len(values) > 1 else ""
        lines.append(f"  {name:<30}" + "".join(f"{value:>12,.1f}" for value in values) + ratio)
    return lines


def plot(runs: list[Run], path: Path) -> None:
    """Draw memory over time."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    axes = (figure := Figure(figsize=(7, 3.2), layout="constrained")).subplots()
    for one in runs:
        axes.plot(*zip(*one.memory, strict=True), label={"process": "one process"}.get(one.name, "Ray, all processes"))
    axes.set(xlabel="seconds", ylabel="MiB", ylim=(0, None))
    axes.legend()
    figure.savefig(path)


def main() -> None:
    """Run both, and print them side by side."""
    parser = argparse.ArgumentParser(description="Measures what many questions take.")
    parser.add_argument("--questions", type=int, default=2_000)
    parser.add_argument("--at-once", type=int, default=64)
    parser.add_argument("--actors", type=int, default=2)
    parser.add_argument("--latency", type=float, default=0.05)
    parser.add_argument("--only", choices=["process", "ray"])
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--answer", type=Path, nargs=2, help=argparse.SUPPRESS)  # in a process of its own
    options = parser.parse_args()
    if options.answer:
        in_one_process(*options.answer, options.at_once)
    names = [options.only] if options.only else ["process", *(["ray"] if importlib.util.find_spec("ray") else [])]
    runs = [run(name, options) for name in names]
    print(*table(runs, options.questions), sep="\n")
    if options.plot:
        plot(runs, options.plot)


if __name__ == "__main__":
    main()
