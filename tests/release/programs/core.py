"""The package without extras: it brings nothing along, works, and says what else there is to install."""

import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import distributions, requires

from selfroute import __version__
from selfroute.answerability import declines
from selfroute.usage.ledger import Ledger

assert {found.metadata["Name"] for found in distributions()} == {"selfroute"}
assert not [line for line in requires("selfroute") or () if "extra ==" not in line]
assert __version__

assert declines("The passages do not mention a ferry.")
assert not declines("The ferry leaves at seven.")
assert Ledger().to_dict()["queries"] == 0
try:
    Ledger.read([{"error": "RateLimitError"}])
except ImportError as error:
    assert str(error).endswith("pip install pydantic"), error
else:
    sys.exit("there is a pydantic")

for package, extra in {"langchain_selfroute": "langchain", "llamaindex_selfroute": "llamaindex"}.items():
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import {package}"], capture_output=True, text=True, check=False
    )
    assert done.stderr.endswith(f'pip install "selfroute[{extra}]"\n'), done

assert not shutil.which("selfroute", path=sysconfig.get_path("scripts")), "the command is the workbench's"
