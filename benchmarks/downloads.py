"""Say what extras and groups download into an empty environment, and fail if one brings what it should not.

    python benchmarks/downloads.py                                      # each extra, as in docs/index.md
    python benchmarks/downloads.py workbench --group test --without torch nvidia triton

It asks pip, which installs nothing (`pip install --dry-run --report`), and adds up the sizes that the servers give.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

import tomllib

ROOT = Path(__file__).resolve().parent.parent
WORKBENCH = "workbench"


def report_of(name: str, *, group: bool) -> list[dict[str, Any]]:
    """Return what pip would install for an extra or a group, with the versions that the tests run with."""
    if group:
        wanted = [".", "./workbench[mcp]", "--group", name]
    else:
        wanted = [".", f"./{name}"] if name.startswith(WORKBENCH) else [f".[{name}]"]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        command += ["--report", str(report), "--constraint", "constraints.txt", *wanted]
        subprocess.run(command, check=True, cwd=ROOT, stderr=subprocess.DEVNULL)
        found: list[dict[str, Any]] = json.loads(report.read_text())["install"]
    return found


def size_of(item: dict[str, Any]) -> int:
    """Return the bytes of a file; 0 for our own folder."""
    url = item["download_info"]["url"]
    parts = urlsplit(url)
    if parts.scheme == "file":
        path = Path(unquote(parts.path))
        return path.stat().st_size if path.is_file() else 0
    try:
        with urlopen(Request(url, method="HEAD"), timeout=60) as answer:  # noqa: S310 - what pip would download
            return int(answer.headers["Content-Length"])
    except OSError as error:
        print(f"The size of {url} is not known: {error}", file=sys.stderr)
        return 0


def extras() -> list[str]:
    """Return the names of all extras, and the workbench with each of its own."""

    def of(folder: Path) -> list[str]:
        with (folder / "pyproject.toml").open("rb") as file:
            return [*tomllib.load(file)["project"]["optional-dependencies"]]

    return [*of(ROOT), WORKBENCH, *(f"{WORKBENCH}[{each}]" for each in of(ROOT / WORKBENCH))]


def main() -> int:
    """Print the numbers of packages, their sizes, and the largest; the exit code is 1 if one is there that must not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("extras", nargs="*", help="all, if none is named")
    parser.add_argument("--group", action="append", default=[], help="a dependency group")
    parser.add_argument("--without", nargs="*", default=[], help="beginnings of names that must not be among them")
    options = parser.parse_args()
    wrong = False
    named = options.extras or (() if options.group else extras())
    for extra, group in [*((one, False) for one in named), *((one, True) for one in options.group)]:
        items = report_of(extra, group=group)
        names = [item["metadata"]["name"] for item in items]
        with ThreadPoolExecutor(8) as threads:
            sizes = dict(zip(names, threads.map(size_of, items), strict=True))
        most = sorted(names, key=lambda name: -sizes[name])[:6]
        largest = ", ".join(f"{name} {sizes[name] / 1e6:.0f}" for name in most)
        asked = f"--group {extra}" if group else (extra if extra.startswith(WORKBENCH) else f"selfroute[{extra}]")
        print(f"{asked}: {len(names)} packages, {sum(sizes.values()) / 1e6:.0f} MB ({largest})", flush=True)
        unwanted = [name for name in names if name.lower().startswith(tuple(options.without))]
        if unwanted:
            print(f"It brings {', '.join(unwanted)}, which it should not.", file=sys.stderr)
            wrong = True
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
