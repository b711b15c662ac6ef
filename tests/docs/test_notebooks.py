"""The notebooks run as they are committed, with outputs that show what they promise."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import nbformat
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import Document as LlamaIndexDocument
from llama_index.core import MockEmbedding, VectorStoreIndex

from langchain_selfroute import SelfRouteChain
from llamaindex_selfroute import SelfRouteQueryEngine
from loopback import LoopbackServer
from selfroute_workbench.demo.corpus import load_documents, load_questions
from selfroute_workbench.demo.recorded import PRICED_AS
from selfroute_workbench.demo.vectors import demo_store
from selfroute_workbench.demo.with_langchain import RecordedModel
from selfroute_workbench.evaluation import Evaluation, Question, evaluate

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
named = pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
# The kernel's client still asks for an event loop policy of its own, and says that it talks over TCP.
known = pytest.mark.filterwarnings("ignore::DeprecationWarning:zmq", "ignore::RuntimeWarning:zmq")

MINUTES = "Ms Okafor chaired the meeting in April."
QUESTION = "Who chaired the meeting in April?"
MODELS = [("openai", "gpt-5-mini"), ("gemini", "gemini-2.5-flash"), ("openai", "my-model")]
ROUTES = ("rag", "sections", "long_context")
PATH = re.compile(r"(?:^|[\s'\"(=\[])(?:/[\w.+-]+){2,}|[A-Z]:\\\\?\w", re.MULTILINE)


def outputs(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def shape(notebook: Any) -> list[list[str]]:
    """What kinds of output each cell has: words differ with the machine's arithmetic, pieces with its speed."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [[kind for kind, _ in groupby(output.output_type for output in cell.outputs)] for cell in cells]


@pytest.mark.matrix
@pytest.mark.timeout(600)
@known
@named
def test_notebook_runs_offline(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nbclient import NotebookClient  # noqa: PLC0415 - only the matrix has it

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("ANONYMIZED_TELEMETRY", "False")
    committed = nbformat.read(path, as_version=4)
    fresh = nbformat.read(path, as_version=4)
    NotebookClient(fresh, timeout=600, kernel_name="python3").execute()
    assert shape(fresh) == shape(committed)


@named
def test_notebook_has_outputs_and_no_paths(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))
    assert any("image/png" in output.get("data", {}) for output in outputs(notebook))
    assert not [o for o in outputs(notebook) if o.output_type == "error" or o.get("name") == "stderr"]
    for output in outputs(notebook):
        data = output.get("data", {})
        for text in (output.get("text", ""), *(data[kind] for kind in data if kind.startswith("text/"))):
            assert not PATH.search(text), "a file of the machine that ran it"
    assert ("load_embeddings" in path.read_text("utf-8")) is (path.stem == "03_composing")


@cache
def shown(name: str) -> str:
    """Everything that the outputs of a notebook say in plain text."""
    made = outputs(nbformat.read(FOLDER / name, as_version=4))
    return "\n".join(output.get("text", output.get("data", {}).get("text/plain", "")) for output in made)


def said(name: str) -> str:
    """Everything that the text of a notebook says, without line breaks."""
    cells = nbformat.read(FOLDER / name, as_version=4).cells
    return " ".join(" ".join(cell.source for cell in cells if cell.cell_type == "markdown").split())


@cache
def evaluated() -> Evaluation:
    """What the default setting and the others make of the questions of the demo."""
    [text] = load_documents().values()
    asked = [Question("", one.id, one.question, one.answers, document=text) for one in load_questions()]
    chain = SelfRouteChain.from_vectorstore(demo_store(), RecordedModel(), priced_as=PRICED_AS)
    return evaluate(chain, asked, judge=True)


def routes_of(strategy: str, kind: str | None = None) -> Counter[str]:
    """How many questions a strategy answered by each route; with a kind those of this kind."""
    kinds = {question.id: question.kind for question in load_questions()}
    results = [result for result in evaluated().results if result.strategy == strategy]
    return Counter(result.route for result in results if kind in (None, kinds[result.shown.id]))


@named
def test_notebook_says_that_replies_are_recorded(path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    assert "recorded replies of a language model" in cells[0].source
    assert "workbench/selfroute_workbench/demo/recording/README.md" in cells[0].source
    [line] = [line for cell in cells[:3] for line in cell.source.split("\n") if "RecordedModel()," in line]
    assert "# your model instead: " in line


@named
def test_notebook_prompts_were_recorded(path: Path) -> None:
    *_, last = [line for line in shown(path.name).splitlines() if line]
    assert last in {"[]", "questions with other passages than the recording's: none"}


@pytest.mark.parametrize("name", ["01_langchain.ipynb", "02_llamaindex.ipynb"])
def test_notebooks_of_frameworks_show_routes(name: str) -> None:
    text = shown(name)
    assert "('Osric Pellan, a diver, for £180.', 'sections')" in text
    assert "Osric Pellan, diver, brought it up on 2 October for £180." in text
    for kind in {question.kind for question in load_questions()}:
        counts = routes_of("yours", kind)
        row = " +".join(str(counts[route]) for route in ("long_context", "rag", "sections"))
        assert re.search(rf"^{kind} +{row}$", text, re.MULTILINE)
    counts = routes_of("yours")
    row = " +".join(str(counts[route]) for route in ROUTES)
    assert re.search(rf"^ +queries +{row} +{counts.total()}$", text, re.MULTILINE)


def test_notebooks_of_frameworks_cost_the_same() -> None:
    lines = [
        re.findall(r"^(?:tokens read|cost|saved): .*$", shown(name), re.MULTILINE)
        for name in ("01_langchain.ipynb", "02_llamaindex.ipynb")
    ]
    assert lines[0] == lines[1]
    assert len(lines[0]) == 3


def test_notebook_of_composing() -> None:
    text = shown("03_composing.ipynb")
    assert "sections | Osric Pellan, a diver, for £180. | {'go': True, 'by': 'budget'" in text
    assert "rag | unanswerable | {'go': False, 'by': 'budget'" in text
    assert all(f"decided for {route} (" in text for route in ROUTES)


def test_notebook_of_evaluating() -> None:
    text, prose = shown("04_evaluating.ipynb"), said("04_evaluating.ipynb")
    assert str(evaluated()) in text
    tables = {table.name: table.rows for table in evaluated().tables()}
    [ours, *_] = tables["main"]
    [_, (*_, kept, lost, _), (*_, still_lost, _), _, _] = tables["abstention"]
    assert f"RAG declines {kept + lost} questions. {lost} of these have an answer in the document" in prose
    assert f"20 passages leave {still_lost}." in prose
    assert f"it takes {ours[4]} times RAG's tokens" in prose
    read = [routes_of(strategy)["long_context"] for strategy in ("yours", "paper")]
    assert "It reads the document for {} questions, the paper's rule for {}.".format(*read) in prose


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    with LoopbackServer(lambda request: "Ms Okafor" if MINUTES in request.prompt else "unanswerable") as server:
        for provider in ("OPENAI", "GOOGLE"):
            monkeypatch.setenv(f"{provider}_API_KEY", "none")
        for variable in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):  # that of the client, and LlamaIndex's
            monkeypatch.setenv(variable, server.openai_url)
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.gemini_url)
        yield server


def with_a_real_model(name: str, server: LoopbackServer) -> Iterator[Any]:
    """What the last cell of a notebook shows, once for each of its models: imports, one model, what is made of it."""
    text = nbformat.read(FOLDER / name, as_version=4).cells[-1].source
    [block] = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    statements = ast.parse(block.replace("http://localhost:8000/v1", server.openai_url)).body
    models = [each for each in statements if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "llm"]
    for model in models:
        kept = [each for each in statements if each is model or each not in models]
        yield compile(ast.Module(kept, type_ignores=[]), name, "exec")


def asked(server: LoopbackServer) -> list[tuple[str, str]]:
    return [(entry.request.protocol, entry.request.model) for entry in server.book]


def test_notebook_models_in_langchain(server: LoopbackServer) -> None:
    minutes = Document(MINUTES, metadata={"source": "minutes"})
    store = InMemoryVectorStore.from_documents([minutes], DeterministicFakeEmbedding(size=8))
    for block in with_a_real_model("01_langchain.ipynb", server):
        names: dict[str, Any] = {"store": store, "SelfRouteChain": SelfRouteChain}
        exec(block, names)  # noqa: S102
        result = names["chain"].invoke(QUESTION)
        assert (result["answer"], result["route"], result["usage"]["estimated"]) == ("Ms Okafor", "rag", False)
    assert asked(server) == MODELS
    *_, last = names["chain"].stream(QUESTION)  # your own server reports its counts only if asked by `stream_usage`
    assert last["usage"]["estimated"] is False


def test_notebook_models_in_llamaindex(server: LoopbackServer) -> None:
    index = VectorStoreIndex.from_documents([LlamaIndexDocument(text=MINUTES)], embed_model=MockEmbedding(8))
    for block in with_a_real_model("02_llamaindex.ipynb", server):
        names: dict[str, Any] = {"index": index, "SelfRouteQueryEngine": SelfRouteQueryEngine}
        exec(block, names)  # noqa: S102
        response = names["query_engine"].query(QUESTION)
        assert (str(response), response.metadata["route"]) == ("Ms Okafor", "rag")
        assert response.metadata["usage"]["estimated"] is False
    assert asked(server) == MODELS
