"""Checks what is to be released: what wheels and sdists hold, and each wheel with each extra alone on each Python.

    python tests/release/check.py [--constraint constraints.txt] dist [python3.10 python3.11 ...]

Each extra is installed into a virtual environment of its own, where its program of `programs/` does what a user of it
does. Interpreters that are not there are left out. The extras that bring hundreds of megabytes along are installed only
for the one that runs this, and resolved for the others. For `AHEAD`, if it is not here, they are resolved
together, out of wheels alone. It ends with exit code 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import zipfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from email import message_from_bytes
from pathlib import Path

HERE, ROOT = Path(__file__).parent, Path(__file__).parent.parent.parent
PACKAGES = ("selfroute", "langchain_selfroute", "llamaindex_selfroute")
WORKBENCH = ("selfroute_workbench",)
LIGHT = {
    "core": "",
    "langchain": "[langchain]",
    "llamaindex": "[llamaindex]",
    "both": "[langchain,llamaindex]",
    "prices": "[prices]",
    "faiss": "[faiss]",
    "postgres": "[postgres]",
    "qdrant": "[qdrant]",
}
HEAVY = {
    "lancedb": "[lancedb]",
    "langchain_milvus": "[langchain-milvus]",
    "llamaindex_milvus": "[llamaindex-milvus]",
}
OF_WORKBENCH = {"workbench": "", "mcp": "[mcp]"}
APART = "llamaindex_milvus"  # needs another pymilvus than langchain_milvus
_TOGETHER = [extra.strip("[]") for name, extra in {**LIGHT, **HEAVY}.items() if extra and name != APART]
RESOLVED = {APART: HEAVY[APART], "the others": f"[{','.join(_TOGETHER)}]"}
AHEAD = "3.14"
"""A Python that need not be here."""
_NO_ADDRESS = "The package has no URLs, and its description no links that work: set SELFROUTE_REPOSITORY to publish it."


class FailedError(Exception):
    """A check failed; the message says how."""


def main() -> int:
    """Run all checks."""
    parser = argparse.ArgumentParser(description="Check what is to be released.")
    parser.add_argument("dist", type=Path, help="the folder of one wheel and one sdist")
    parser.add_argument("pythons", nargs="*", help="interpreters to try, by name or path")
    parser.add_argument("--constraint", type=Path, help="versions to install; without it the newest")
    args = parser.parse_args()
    wheel, sdist = sole(args.dist, "selfroute-*.whl"), sole(args.dist, "selfroute-*.tar.gz")
    workbench = sole(args.dist, "selfroute_workbench-*.whl")
    problems = [
        *wrong_in_wheel(wheel, ROOT, PACKAGES),
        *wrong_in_wheel(workbench, ROOT / "workbench", WORKBENCH),
        *wrong_in_description(wheel),
        *wrong_in_sdist(sdist),
        *wrong_versions(wheel, workbench),
    ]
    for problem in problems:
        print("FAILED", problem)
    environment = settings(args.constraint)
    compiled = tempfile.TemporaryDirectory()
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    pythons = {here: sys.executable} | {version: path for path in args.pythons if (version := version_of(path))}
    trials = [
        (version, python, name)
        for version, python in {**pythons, AHEAD: pythons.get(AHEAD)}.items()
        for name in ({**LIGHT, **HEAVY, **OF_WORKBENCH} if python else RESOLVED)
    ]

    def tried(trial: tuple[str, str | None, str]) -> str | None:
        """Try an extra with a Python; return how it failed."""
        version, python, name = trial
        extras = {**LIGHT, **HEAVY, **RESOLVED, **OF_WORKBENCH}[name]
        wanted = [f"{wheel}{extras}"] if name not in OF_WORKBENCH else [str(wheel), f"{workbench}{extras}"]
        try:
            if python is None:
                resolve_ahead(f"selfroute{extras} @ {wheel.as_uri()}", environment)
            elif name not in LIGHT and version != here:
                resolve(wanted, python, environment)
            else:
                check(wanted, HERE / "programs" / f"{name}.py", python, environment, Path(compiled.name))
        except FailedError as error:
            return str(error)
        return None

    with compiled, ThreadPoolExecutor(os.cpu_count()) as at_once:
        for (version, _, name), failed in zip(trials, at_once.map(tried, trials), strict=True):
            if failed is not None:
                problems.append(f"{version} {name}")
            print(f"{version:<6}{name:<18}", "ok" if failed is None else f"FAILED\n{failed}", flush=True)
    print("Wrong:" if problems else "All is well.", *problems)
    return 1 if problems else 0


def sole(folder: Path, pattern: str) -> Path:
    """Find the one file of a kind."""
    (found,) = folder.glob(pattern)
    return found.resolve()


def sources(root: Path, packages: Sequence[str]) -> set[str]:
    """List the files of the packages as they are in the tree, without what Python and editors leave there."""
    paths = (path for package in packages for path in (root / package).rglob("*") if path.is_file())
    return {str(path.relative_to(root)) for path in paths if "__pycache__" not in path.parts}


def wrong_in_wheel(wheel: Path, root: Path, packages: Sequence[str]) -> Iterator[str]:
    """Say what is missing in a wheel, or too much."""
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    in_tree = sources(root, packages)
    yield from (f"{wheel.name} lacks {name}" for name in sorted(in_tree - held))
    yield from (f"{wheel.name} holds {name}" for name in sorted(held - in_tree))
    yield from (f"{package} has no py.typed" for package in packages if f"{package}/py.typed" not in held)


def wrong_versions(wheel: Path, workbench: Path) -> Iterator[str]:
    """Say whether the workbench asks for another version of the package than this one, or has another."""
    version = message_from_bytes(metadata(wheel))["Version"]
    about = message_from_bytes(metadata(workbench))
    if about["Version"] != version:
        yield f"the workbench is {about['Version']}, the package {version}"
    if not any(re.match(rf"selfroute\b.*=={re.escape(version)}$", each) for each in about.get_all("Requires-Dist")):
        yield f"the workbench does not ask for selfroute=={version}"


def metadata(wheel: Path) -> bytes:
    """Return what a wheel says of itself."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return archive.read(name)


def wrong_in_description(wheel: Path) -> Iterator[str]:
    """Say which links of the description lead nowhere; none is checked if the package was built without an address."""
    told = message_from_bytes(metadata(wheel))
    if "Project-URL" not in told:
        print(_NO_ADDRESS)
        return
    links = re.findall(r"\]\(([^)\s]+)|\b(?:src|srcset)=\"([^\"]+)", told.get_payload())
    relative = (link for pair in links for link in pair if link and not re.match("https?:|#", link))
    yield from (f"the description links to {link}" for link in relative)


def wrong_in_sdist(sdist: Path) -> Iterator[str]:
    """Say what an sdist lacks of what the tests need, and what of it nobody does."""
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    needed = sources(ROOT, (*PACKAGES, "workbench", "tests", "docs", "notebooks", "benchmarks", "examples"))
    needed |= {
        "Makefile",
        "README.md",
        "SECURITY.md",
        "CONTRIBUTING.md",
        "CITATION.cff",
        "NOTICE",
        "constraints.txt",
        "hatch_build.py",
        "requirements-oldest.txt",
    }
    yield from (f"the sdist lacks {name}" for name in sorted(needed - held))
    junk = (".pyc", ".ipynb_checkpoints", ".so", ".log", ".sqlite3")
    yield from (f"the sdist holds {name}" for name in sorted(held) if any(part in name for part in junk))


def settings(constraint: Path | None) -> dict[str, str]:
    """Make the environment variables of uv, which reads none of pip's settings: where packages are found."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True)
    for line in listed.stdout.splitlines():
        key, _, value = line.partition("=")
        variable = {"find-links": "UV_FIND_LINKS", "index-url": "UV_DEFAULT_INDEX"}.get(key.rpartition(".")[2])
        if variable:
            environment.setdefault(variable, ast.literal_eval(value))
    if constraint:
        environment["UV_CONSTRAINT"] = str(constraint.resolve())
    return environment | {"HF_HUB_OFFLINE": "1", "ANONYMIZED_TELEMETRY": "False"}


def version_of(python: str) -> str | None:
    """Ask an interpreter for its version; None if it is not there."""
    program = "import sys; print('%d.%d' % sys.version_info[:2])"
    path = shutil.which(python)
    done = path and subprocess.run([path, "-c", program], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done and done.returncode == 0 else None


def check(requirements: Sequence[str], program: Path, python: str, environment: dict[str, str], kept: Path) -> None:
    """Install requirements into a new virtual environment and run a program there, which sees nothing else.

    What Python compiles is kept, since the next environment of this thread has the same path.
    """
    venv = kept / threading.current_thread().name
    inside = str(venv / "bin" / "python")
    with tempfile.TemporaryDirectory() as scratch:
        for command in (
            ["uv", "venv", "--clear", "--python", python, str(venv)],
            ["uv", "pip", "install", "--python", inside, *requirements],
            ["uv", "pip", "check", "--python", inside],
            [inside, "-I", "-X", f"pycache_prefix={kept / 'compiled'}", str(program)],
        ):
            run(command, scratch, environment)


def resolve(requirements: Sequence[str], python: str, environment: dict[str, str]) -> None:
    """Find out whether requirements can be installed together, without installing them."""
    with tempfile.TemporaryDirectory() as scratch:
        venv = str(Path(scratch, "venv"))
        run(["uv", "venv", "--python", python, venv], scratch, environment)
        run(["uv", "pip", "install", "--python", venv, "--dry-run", *requirements], scratch, environment)


def resolve_ahead(requirement: str, environment: dict[str, str]) -> None:
    """Find out whether there are wheels of a requirement, and of all that it needs, for a Python that is not here."""
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, "wanted.in").write_text(requirement, encoding="utf-8")
        command = ["uv", "pip", "compile", "--python-version", AHEAD, "--only-binary", ":all:", "wanted.in"]
        run(command, scratch, environment)


def run(command: Sequence[str], folder: str, environment: dict[str, str]) -> None:
    """Run a command, whose output is told only if it fails."""
    tool, *rest = command
    path = str(Path(sys.executable).with_name(tool)) if tool == "uv" else tool
    done = subprocess.run(
        [path, *rest],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        msg = f"{' '.join(command)}\n{done.stdout}{done.stderr}"
        raise FailedError(msg)


if __name__ == "__main__":
    sys.exit(main())
