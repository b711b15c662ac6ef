"""The extra `cli`: the command routes questions, and says what it cannot do without more; and README's first code."""

import json
import re
import shutil
import subprocess
import sys
import sysconfig
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

command = shutil.which("selfroute", path=sysconfig.get_path("scripts"))
assert command, "the wheel brought no command"


def told(*args: str, code: int = 0) -> str:
    done = subprocess.run([command, *args], capture_output=True, text=True, check=False)
    assert done.returncode == code, done
    return done.stderr if code else done.stdout


assert told("--version").startswith("selfroute ")
assert "evaluate" in told("--help")
shown = json.loads(told("demo", "--limit", "1", "--json"))
assert len(shown["questions"]) == 1, shown
assert "pip install langchain-openai" in told("demo", "--limit", "1", "--model", "openai:gpt-4o-mini", code=1)
assert "embeddings" in told("ask", __file__, "Why?", "--embeddings", "all-MiniLM-L6-v2", code=2)
readme = Path(__file__).parents[3].joinpath("README.md").read_text("utf-8")
code, shown_there = re.findall(r"```(?:python|text)\n(.*?)```", readme, re.DOTALL)[:2]
with redirect_stdout(StringIO()) as printed:
    exec(code)  # noqa: S102 - our own
assert printed.getvalue() == shown_there, printed.getvalue()
sys.exit(0)
