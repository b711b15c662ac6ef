"""The workbench: its command routes questions, reads files and says what it lacks; `evaluate` measures a chain."""

import json
import shutil
import subprocess
import sysconfig
import tempfile
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda
from pypdf import PdfWriter

from langchain_selfroute import SelfRouteChain
from selfroute_workbench import evaluate
from selfroute_workbench.files import UnreadableFileError, read_bytes

command = shutil.which("selfroute", path=sysconfig.get_path("scripts"))
assert command, "the wheel brought no command"


def told(*args: str, code: int = 0) -> str:
    done = subprocess.run([command, *args], capture_output=True, text=True, check=False)
    assert done.returncode == code, done
    return done.stderr if code else done.stdout


def is_unreadable(data: bytes, name: str) -> bool:
    try:
        read_bytes(data, name)
    except UnreadableFileError:
        return True
    return False


assert told("--version").startswith("selfroute ")
assert "evaluate" in told("--help")
shown = json.loads(told("demo", "--limit", "1", "--json"))
assert len(shown["questions"]) == 1, shown
assert "pip install langchain-openai" in told("demo", "--limit", "1", "--model", "openai:gpt-4o-mini", code=1)
assert "embeddings" in told("ask", __file__, "Why?", "--embeddings", "all-MiniLM-L6-v2", code=2)

page = b"<html><title>Ferry</title><p>It leaves at <b>seven</b>.</html>"
assert read_bytes(page, "a.html").text == "Ferry\n\nIt leaves at seven.", page
XML = (
    '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
    "<w:body><w:p><w:r><w:t>It leaves at seven.</w:t></w:r></w:p></w:body></w:document>"
)
data = BytesIO()
with ZipFile(data, "w") as parts:
    parts.writestr("word/document.xml", XML)
assert read_bytes(data.getvalue(), "a.docx").text == "It leaves at seven."
empty, data = PdfWriter(), BytesIO()
empty.add_blank_page(100, 100)
empty.write(data)
assert is_unreadable(data.getvalue(), "a.pdf"), "an empty page has a text"

minutes = Document("Ms Okafor chaired the meeting.")
llm = FakeListChatModel(responses=["Ms Okafor"])
chain = SelfRouteChain(retriever=RunnableLambda(lambda _: [minutes]), llm=llm, documents=[minutes])
result = evaluate(chain, [{"question": "Who chaired the meeting?", "answers": ["Okafor", "Ms Okafor"]}])
assert "long" in str(result)
with tempfile.TemporaryDirectory() as folder:
    result.save(folder)
    assert [path for path in Path(folder).iterdir() if path.suffix == ".html"]
