"""The README says what works: its Python blocks are run, against a server that answers like a provider."""

import re
from collections.abc import Iterator
from pathlib import Path

import llama_index.core
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from llama_index.core import MockEmbedding, VectorStoreIndex

from loopback import LoopbackServer, Request
from replies import languages_put_back

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
EVALUATING = (ROOT / "docs" / "evaluating.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README + EVALUATING, re.MULTILINE | re.DOTALL)

# Only the whole document holds all of them: five are retrieved.
CHUNKS = [
    "The minutes. ",
    "In April ",
    "the treasurer ",
    "was away. ",
    "Tea was served. ",
    "Ms Okafor ",
    "took the chair.",
]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    def answer(request: Request) -> str:
        return "Ms Okafor" if all(chunk.strip() in request.prompt for chunk in CHUNKS) else "unanswerable"

    with LoopbackServer(answer) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)  # the variable of the client and of LangChain
        monkeypatch.setenv("OPENAI_API_BASE", server.openai_url)  # that of LlamaIndex
        yield server


def names_in(folder: str) -> list[str]:
    return [path.name for path in Path(folder).iterdir()]


async def test_the_python_blocks_of_the_readme_run(
    server: LoopbackServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    chroma = pytest.importorskip("langchain_chroma").Chroma
    minutes = "".join(CHUNKS)
    starts = [minutes.index(chunk) for chunk in CHUNKS]
    store = chroma("readme", DeterministicFakeEmbedding(size=8))
    for tenant in ("north", "south"):
        metadata = [{"source": "minutes", "start_index": start, "tenant": tenant} for start in starts]
        store.add_texts(CHUNKS if tenant == "north" else ["Nobody came."] * len(CHUNKS), metadata)
    index = VectorStoreIndex.from_documents([llama_index.core.Document(text=minutes)], embed_model=MockEmbedding(8))
    names = {"vectorstore": store, "index": index}
    assert len(BLOCKS) == 9
    with languages_put_back():
        for block in BLOCKS:
            exec(compile(block, "README.md", "exec"), names)  # noqa: S102
    shown = capsys.readouterr().out
    assert "Ms Okafor long_context\n" in shown
    assert "Ms Okafor rag\n" in shown
    assert re.search(r"queries +0 +1 +1\n", shown)
    assert len(re.findall(r"\bself_route +Ms Okafor +long_context +1\.0\n", shown)) == 2
    assert {"report.html", "results.json", "replies.jsonl"} <= set(names_in("evaluation"))
    answers = names["chain"].invoke("Who chaired?")
    assert (answers["answer"], answers["route"]) == ("Ms Okafor", "long_context")
    result = await names["Ask"]().run(question="Who chaired?")
    assert (str(result), result.metadata["answerable"]) == ("Ms Okafor", True)


def test_the_readme_shows_a_newcomer_both_frameworks_by_line_40() -> None:
    lines = README.splitlines()
    assert lines.index('result = chain.invoke("Who chaired the meeting in April?")') < 25
    assert lines.index('response = engine.query("Who chaired the meeting in April?")') < 40


def test_every_file_that_the_readme_links_to_is_there() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", README)
    assert links
    assert not [link for link in links if not (ROOT / link).exists()]


def test_every_make_target_that_the_documents_name_is_there() -> None:
    texts = README + (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z-]+)\b", texts)) <= targets
