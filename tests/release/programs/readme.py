"""The first lines of the README, as the package's description has them, print what it says."""

import contextlib
import io
import re
import runpy
import tempfile
from importlib.metadata import metadata
from pathlib import Path

blocks = re.search(r"```python\n(.*?)```\n+```text\n(.*?)```", metadata("selfroute")["Description"], re.DOTALL)
assert blocks, metadata("selfroute")["Description"]
shown = io.StringIO()
with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(shown):
    Path(folder, "lines.py").write_text(blocks[1], encoding="utf-8")
    runpy.run_path(str(Path(folder, "lines.py")))
assert shown.getvalue() == blocks[2], shown.getvalue()
