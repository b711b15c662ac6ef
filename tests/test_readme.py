"""The README says what works: its Python blocks are run, against a server that answers like a provider."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

from loopback import LoopbackServer, Request

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    def answer(request: Request) -> str:
        return "Ms Okafor" if "took the chair" in request.prompt and "treasurer" in request.prompt else "unanswerable"

    with LoopbackServer(answer) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        yield server


def test_the_python_blocks_of_the_readme_run(server: LoopbackServer, capsys: pytest.CaptureFixture[str]) -> None:
    minutes = Document("In April the treasurer was away. Ms Okafor took the chair.", metadata={"source": "minutes"})
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents([Document("In April the treasurer was away.", metadata={"source": "minutes"})])
    names = {"vectorstore": store, "documents": [minutes]}
    assert len(BLOCKS) == 4
    for block in BLOCKS:
        exec(compile(block, "README.md", "exec"), names)  # noqa: S102
    assert "Ms Okafor long_context\n" in capsys.readouterr().out
    answers = names["chain"].invoke("Who chaired?")
    assert (answers["answer"], answers["route"]) == ("Ms Okafor", "long_context")


def test_the_readme_shows_a_newcomer_the_chain_by_line_25() -> None:
    lines = README.splitlines()
    assert lines.index('result = chain.invoke("Who chaired the meeting in April?")') < 25


def test_every_file_that_the_readme_links_to_is_there() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", README)
    assert links
    assert not [link for link in links if not (ROOT / link).exists()]


def test_every_make_target_that_the_documents_name_is_there() -> None:
    texts = README + (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z]+)\b", texts)) <= targets
