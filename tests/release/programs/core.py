"""The package without extras: it brings pydantic along, works, and says what else there is to install."""

import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import requires

from selfroute import __version__
from selfroute.answerability import declines
from selfroute.usage.ledger import Ledger

assert [line for line in requires("selfroute") or () if "extra ==" not in line] == ["pydantic>=2.8"]
assert __version__

assert declines("The passages do not mention a ferry.")
assert not declines("The ferry leaves at seven.")
assert Ledger().to_dict()["queries"] == 0
assert Ledger.read([{"error": "RateLimitError"}]).to_dict()["failed"] == 1

for package, extra in {"langchain_selfroute": "langchain", "llamaindex_selfroute": "llamaindex"}.items():
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import {package}"], capture_output=True, text=True, check=False
    )
    assert done.stderr.endswith(f'pip install "selfroute[{extra}]"\n'), done

assert not shutil.which("selfroute", path=sysconfig.get_path("scripts")), "the command is the workbench's"
