"""The extra `cli`: the command routes questions, and says what it cannot do without more."""

import json
import shutil
import subprocess
import sys
import sysconfig

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
sys.exit(0)
