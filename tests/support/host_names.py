"""Which names of a host that are not public an adapter uses."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from types import ModuleType


def private_names(module: ModuleType) -> set[str]:
    """The names in a module that look private and that it does not define: attributes, and texts for `getattr`."""
    tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    used |= {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return {name for name in used if name.startswith("_") and name.isidentifier() and not name.startswith("__")}


def run(program: str) -> None:
    """Run a program in a process of its own, with warnings as errors."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
