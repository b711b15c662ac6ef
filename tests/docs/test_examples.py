"""The examples are started as a user starts them, and do what their first lines say."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import ChatOpenAI

from examples_parts import EXAMPLES, Started, free_port, load, start, wait_for
from langchain_selfroute import SelfRouteChain, SelfRouteLedger
from loopback import LoopbackServer, Reply, Request
from word_vectors import LangChainWords

pytestmark = pytest.mark.timeout(300)  # some start many processes

NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))
ANSWER = "Yes, Osric Pellan did"
WORDS = ANSWER.split()
BEFORE = 3  # the draft, sections, and more sections, before the whole document


@pytest.fixture(scope="module")
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(lambda _request: "") as started:
        yield started


@pytest.fixture(autouse=True)
def _fresh(server: LoopbackServer) -> None:
    server.book.clear()
    server.answer = escalating


def is_partial(request: Request) -> bool:
    return request.body["messages"][-1]["content"].startswith("Passages")


def question_in(prompt: str) -> str:
    return re.findall(r"^Question: (.*)$", prompt, re.MULTILINE)[-1]


def asked(request: Request) -> str:
    return question_in(request.prompt)


def escalating(request: Request) -> str:
    return "unanswerable" if is_partial(request) else ANSWER


def rows_in(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def test_readme_lists_every_example() -> None:
    readme = (EXAMPLES / "README.md").read_text("utf-8")
    assert sorted(re.findall(r"^\| \[(\w+)\.py\]", readme, re.MULTILINE)) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_examples_name_a_missing_key(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "bulk_ray":
        pytest.importorskip("ray")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    more = ["ask", "Who?"] if name == "chroma_server" else []
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--model", "openai:gpt-5-mini", *more])
    with pytest.raises(SystemExit) as exit_:
        load(name).main()
    shown = capsys.readouterr()
    assert (exit_.value.code, shown.out) == (2, "")
    assert "OPENAI_API_KEY" in shown.err.splitlines()[-1]


@pytest.mark.matrix
def test_examples_without_a_key(tmp_path: Path) -> None:
    with start("chat") as chat, start("tenants") as tenants, start("bulk", cwd=tmp_path) as bulk:
        chat.say("Who retrieved the fog bell from the water?")
        chat.until(r"\[(rag|sections|long_context)\] \w+")
        chat.say("")
        for example in (chat, tenants, bulk):
            assert example.end() == 0, example.text
    assert "custom retriever, filter given: " in tenants.text
    assert "30/30" in bulk.text
    routes = Counter(row["route"] for row in rows_in(tmp_path / "answers.jsonl"))
    assert routes == {"rag": 11, "sections": 17, "long_context": 2}, "the recording answers these questions"


# Doors for agents


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("agent", ["rag: £104", "sections: Osric Pellan, a diver, for £180", "[harbour-minutes.md, from "]),
        pytest.param(
            "workflow",
            ["RouteEvent: sections", "SectionsEvent: ", "Osric Pellan, a diver, for £180"],
            marks=pytest.mark.matrix,
        ),
        pytest.param(
            "mcp_client",
            ["tools: ask, search, find, open", "sections: The greatest gust was 74 knots", "line 1437: The greatest"],
            marks=pytest.mark.matrix,
        ),
    ],
)
@pytest.mark.matrix
def test_examples_of_doors(name: str, shown: list[str]) -> None:
    with start(name) as example:
        assert example.end() == 0, example.text
    for part in shown:
        assert part in example.text, example.text
    assert "unanswerable" not in example.text


# service.py


@pytest.fixture(scope="module")
def running(server: LoopbackServer) -> Iterator[httpx.Client]:
    with start("service", "--port", 0, model_at=server.openai_url) as started:
        address = started.until(r"running on (http://\S+)")[1]
        with httpx.Client(base_url=address, timeout=60) as client:
            yield client


@pytest.fixture
def service(running: httpx.Client) -> httpx.Client:
    """The service, with nothing in its ledger."""
    running.post("/ledger/close")
    return running


def events(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    """The events in the lines of a response."""
    for line in lines:
        if line.startswith("event: "):
            yield line.removeprefix("event: "), json.loads(next(lines).removeprefix("data: "))


@pytest.mark.matrix
def test_service_streams_an_answer(server: LoopbackServer, service: httpx.Client) -> None:
    with service.stream("POST", "/ask", json={"question": "Who brought the bell up?"}) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        route, sources, *texts, cited, end = events(response.iter_lines())
    assert route == ("route", "long_context")
    assert sources[0] == "sources"
    assert "harbour-minutes.md" in sources[1]
    assert {kind for kind, _ in texts} == {"text"}
    assert len(texts) == len(WORDS)
    assert "".join(text for _, text in texts) == ANSWER
    assert cited[0] == "citations"
    assert [set(one) for one in cited[1]] == [{"source", "text", "score"}] * len(cited[1])
    assert {one["source"] for one in cited[1]} <= set(sources[1])
    assert "brought it up" in cited[1][0]["text"]
    assert end[0] == "end"
    assert (end[1]["answerable"], end[1]["decision"]["signal"]) == (True, "sentinel")
    assert end[1]["usage"]["total_tokens"] > 0
    assert len(server.book) == BEFORE + 1


@pytest.mark.matrix
@pytest.mark.parametrize("early", [True, False], ids=["before any text", "in the middle"])
@pytest.mark.parametrize("step", ["rag", "long_context"])
def test_service_stops_the_model_when_a_client_leaves(
    server: LoopbackServer, service: httpx.Client, step: str, *, early: bool
) -> None:
    reply = Reply(ANSWER, first_delay=60) if early else Reply(ANSWER, hold_after=3)
    server.answer = lambda request: "unanswerable" if step == "long_context" and is_partial(request) else reply
    with service.stream("POST", "/ask", json={"question": "Who brought the bell up?"}) as response:
        if early:
            wait_for(lambda: len(server.book) == (BEFORE + 1 if step == "long_context" else 1))
        else:
            lines = events(response.iter_lines())
            assert next(lines) == ("route", step)
            assert any(event == ("text", f" {WORDS[1]}") for event in lines)
    server.settle(30)
    *earlier, last = server.book
    assert [entry.left for entry in earlier] == [False] * (BEFORE if step == "long_context" else 0)
    assert (last.left, last.done, last.sent, is_partial(last.request)) == (
        True,
        False,
        0 if early else 3,
        step == "rag",
    )
    figures = service.post("/ledger/close").json()
    assert (figures["left"], figures["failed"]) == (1, 0)


@pytest.mark.matrix
def test_service_shows_an_error_without_a_key(server: LoopbackServer, service: httpx.Client) -> None:
    server.answer = lambda _: Reply(status=400, error={"message": "Bad key sk-abcdefghijkl"})
    with service.stream("POST", "/ask", json={"question": "Who?"}) as response:
        ((kind, message),) = events(response.iter_lines())
    assert kind == "error"
    assert message.startswith("Bad key *** (")
    server.answer = lambda _: Reply(ANSWER, error_after=2)
    with service.stream("POST", "/ask", json={"question": "Who?"}) as response:
        kinds = [kind for kind, _ in events(response.iter_lines())]
    assert kinds == ["route", "sources", "text", "text", "error"]


@pytest.mark.matrix
def test_service_has_a_page_and_figures(service: httpx.Client) -> None:
    page = service.get("/", follow_redirects=True)
    assert (page.status_code, page.url.path, "/ask" in service.get("/openapi.json").text) == (200, "/docs", True)
    for _ in range(2):
        service.post("/ask", json={"question": "Who brought the bell up?"})
    figures = service.get("/ledger").json()
    assert (figures["queries"], figures["routes"]) == (2, {"rag": 0, "sections": 0, "long_context": 2})
    assert service.post("/ledger/close").json()["queries"] == 2
    assert service.get("/ledger").json()["queries"] == 0
    assert service.post("/ask", json={"question": ""}).status_code == 422


@pytest.mark.matrix
async def test_service_answers_two_at_once(server: LoopbackServer) -> None:
    server.answer = lambda request: asked(request) if "{" in asked(request) else "unanswerable"
    llm = ChatOpenAI(base_url=server.openai_url, api_key="k", model="m", stream_usage=True)
    passages = RunnableLambda(lambda _: [Document("It was raining.")])
    app = load("service").make_app(SelfRouteChain(retriever=passages, llm=llm, documents=[Document("It rained.")]))
    questions = ["Is it {x}, {{y}} or {% z %}?", "Was war los?"]
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://service") as client:
        replies = await asyncio.gather(*(client.post("/ask", json={"question": question}) for question in questions))
        assert (await client.post("/ask", json={"question": " "})).status_code == 422
    told = [re.findall(r"^data: (.*)$", reply.text, re.MULTILINE) for reply in replies]
    assert [lines[:2] for lines in told] == [['"rag"', '["?"]'], ['"long_context"', '["?"]']]
    assert "".join(map(json.loads, told[0][2:-1])) == questions[0]
    assert told[1][2:-1] == ['"unanswerable"']


# chat.py


@pytest.mark.matrix
def test_chat(server: LoopbackServer) -> None:
    def answer(request: Request) -> Reply | str:
        if "Rewrite the question" in request.prompt:
            return "Who paid Osric Pellan for the fog bell?"
        kinds = {"Stop?": Reply(ANSWER, hold_after=3), "Fail?": Reply(status=400, error={"message": "No credit."})}
        return kinds.get(asked(request)) or escalating(request)

    server.answer = answer
    with start("chat", model_at=server.openai_url) as chat:
        chat.until("> ")
        chat.say("Who brought the bell up?")
        chat.until(rf"\[long_context\] {ANSWER}\n\n> ")
        first, server.book[:] = [entry.request.body["messages"] for entry in server.book], []
        assert [len(messages) for messages in first] == [1] * (BEFORE + 1)
        chat.say("And who paid?")
        chat.until(rf"\[long_context\] {ANSWER}\n\n> ")
        rewrite, draft, *_, final = (entry.request.body["messages"] for entry in server.book)
        past = [("user", "Who brought the bell up?"), ("assistant", ANSWER)]
        for messages in (rewrite, draft, final):
            assert [(message["role"], message["content"]) for message in messages[:-1]] == past
        assert draft[-1]["content"].endswith("Question: And who paid?\nAnswer:")
        chat.say("Stop?")
        chat.until(rf"\[rag\] {' '.join(WORDS[:3])}")
        chat.process.send_signal(signal.SIGINT)
        chat.until(r"\(stopped\)\n\n> ")
        server.settle(30)
        assert server.book[-1].left
        chat.say("Fail?")
        chat.until(r"No credit\. \(\w+\)\n\n> ")
        chat.say("Who brought the bell up?")
        chat.until(rf"\[long_context\] {ANSWER}\n\n> ")
        said = [message["content"] for message in server.book[-1].request.body["messages"][:-1]]
        assert said == ["Who brought the bell up?", ANSWER, "And who paid?", ANSWER]
        chat.say("")
        assert chat.end() == 0


def test_chat_searches_for_the_reworded_question() -> None:
    chat, searched = load("chat"), list[str]()
    store = load("tenants").make_store(LangChainWords())
    store.similarity_search = lambda query, **_: searched.append(query) or []
    rewrite = RunnableLambda(chat.joined)
    chain = chat.make_chain(store, FakeListChatModel(responses=["unanswerable"]), rewrite=rewrite)
    chain.invoke({"input": "Who?", "chat_history": []})
    history = [chat.HumanMessage("Who dived?"), chat.AIMessage("Mr Pellan.")]
    chain.invoke({"input": "When?", "chat_history": history})
    assert searched == ["Who?", "Who dived? When?"]


# tenants.py


@pytest.mark.matrix
def test_tenants(server: LoopbackServer) -> None:
    def answer(request: Request) -> str:
        divers = re.findall("Osric Pellan|Una Marsh", request.prompt)
        return "unanswerable" if is_partial(request) else f"It was {' and '.join(sorted({*divers}))}."

    server.answer = answer
    with start("tenants", model_at=server.openai_url) as tenants:
        assert tenants.end() == 0, tenants.text
    _, *told = re.split(r"^(?=\w[\w ,]*: )", tenants.text, flags=re.MULTILINE)
    shown = [one for one in told if not one.startswith("nothing was retrieved")]  # it is logged
    assert shown[:3] + shown[4:] == [
        "north: [long_context] It was Osric Pellan.\n  read: minutes.md of north\n",
        "south: [long_context] It was Una Marsh.\n  read: minutes.md of south\n",
        "nobody: [rag] unanswerable\n  read: nothing\n",
        "custom retriever, filter given: [long_context] It was Osric Pellan.\n  read: minutes.md of north\n",
    ]
    assert re.match(
        r"custom retriever, no filter given: cannot verify that .* in tenant; pass StoredDocuments\(", shown[3]
    )
    escalated = [True] * BEFORE + [False]
    assert [is_partial(entry.request) for entry in server.book] == escalated * 2 + [True] + escalated


# chroma_server.py


@pytest.mark.matrix
def test_chroma_server(server: LoopbackServer, tmp_path: Path) -> None:
    chromadb, port = pytest.importorskip("chromadb"), free_port()
    program = [str(Path(sys.executable).parent / "chroma"), "run", "--path", str(tmp_path), "--host", "127.0.0.1"]
    with Started([*program, "--port", str(port)], cwd=tmp_path) as chroma:

        def client() -> Any:
            assert chroma.process.poll() is None, chroma.text
            try:
                return chromadb.HttpClient("127.0.0.1", port)
            except ValueError:
                return None

        here = wait_for(client, lambda: chroma.text)
        with start("chroma_server", "--port", port, "index") as index:
            assert index.end() == 0, index.text
        (collection,) = here.list_collections()
        before = collection.get()
        shown = f"{len(before['ids'])} passages of harbour-minutes.md are indexed"
        assert shown in index.text
        command = ["--port", port, "ask", "Who brought the bell up?"]
        with start("chroma_server", *command, model_at=server.openai_url) as ask:
            assert ask.end() == 0, ask.text
        assert re.search(
            rf"^\[long_context\] {ANSWER}\n  read: .*harbour-minutes\.md.*; [\d,]+ tokens$", ask.text, re.MULTILINE
        )
        assert here.list_collections()[0].get() == before


# bulk.py


@pytest.mark.matrix
def test_bulk_goes_on_after_a_kill(server: LoopbackServer, tmp_path: Path) -> None:
    questions = [f"What is number {number}?" for number in range(12)]
    (tmp_path / "questions.jsonl").write_text(
        "".join(json.dumps({"id": n, "question": text}) + "\n" for n, text in enumerate(questions))
    )
    out, command = tmp_path / "answers.jsonl", ["questions.jsonl", "--at-once", "3"]
    begun: set[str] = set()

    def five_then_silence(request: Request) -> Reply | str:
        begun.update([asked(request)] if len(begun) < 5 else [])
        return escalating(request) if asked(request) in begun else Reply(ANSWER, hold_after=0)

    server.answer = five_then_silence
    with start("bulk", *command, model_at=server.openai_url, cwd=tmp_path) as bulk:
        wait_for(lambda: len(server.book) == 5 * (BEFORE + 1) + 3 and len(rows_in(out)) == 5, lambda: bulk.text)
        bulk.process.kill()
        assert bulk.end() == -signal.SIGKILL
    server.settle(30)
    assert [entry.left for entry in server.book].count(True) == 3  # at once, and no more
    refused, *left = [question for question in questions if question not in begun]
    with out.open("a") as file:
        file.write('{"id": 5, "question": "What is num')  # a line that was cut off
    server.book.clear()
    server.answer = lambda request: (
        Reply(status=400, error={"message": "No."}) if asked(request) == refused else escalating(request)
    )
    with start("bulk", *command, model_at=server.openai_url, cwd=tmp_path) as bulk:
        assert bulk.end() == 1
    calls = Counter(asked(entry.request) for entry in server.book)
    assert calls == {refused: 1} | dict.fromkeys(left, BEFORE + 1)
    assert sorted(row["question"] for row in rows_in(out)) == sorted([*begun, *left])
    assert {(row["answer"], row["route"]) for row in rows_in(out)} == {(ANSWER, "long_context")}
    (failed,) = rows_in(tmp_path / "answers.failed.jsonl")
    assert failed["question"] == refused
    assert failed["error"].startswith("No. (")
    assert "12/12" in bulk.text
    assert re.search(r"^ +queries +0 +0 +6 +6$", bulk.text, re.MULTILINE)
    assert re.search(r"^ +failed attempts +1$", bulk.text, re.MULTILINE)
    assert "1 failed, see answers.failed.jsonl" in bulk.text


async def test_bulk_asks_by_document(tmp_path: Path) -> None:
    bulk, questions = load("bulk"), ["A1?", "B1?", "nothing?", "A2?", "C1?", "fails?", "B2?", "A3?"]

    def find(question: str) -> list[Document]:
        if question == "fails?":
            raise ValueError(question)
        return [Document("x", metadata={"source": question[0]})] if question != "nothing?" else []

    rows = [{"question": question} for question in questions]
    ordered = await bulk.by_document(RunnableLambda(find), rows, at_once=2)
    assert [row["question"] for row in ordered] == ["A1?", "A2?", "A3?", "B1?", "B2?", "nothing?", "fails?", "C1?"]
    chain = SelfRouteChain(
        retriever=RunnableLambda(find), llm=RunnableLambda(lambda _: ANSWER), documents=[Document("x")]
    )
    out, ledger = tmp_path / "answers.jsonl", SelfRouteLedger()
    config = RunnableConfig(max_concurrency=2, callbacks=[ledger])
    assert await bulk.answer_all(chain, rows, out=out, config=config) == 1
    assert sorted(row["question"] for row in rows_in(out)) == sorted(set(questions) - {"fails?"})
    read, heard = SelfRouteLedger.read(rows_in(out)).to_dict(), ledger.to_dict()
    assert read["declined"] == 1  # where nothing was found
    assert all(read[key] == heard[key] for key in ("queries", "routes", "declined", "unanswerable", "tokens"))


async def test_bulk_embeds_a_slice_in_one_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bulk, calls = load("bulk"), []

    class Counted(DeterministicFakeEmbedding):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            calls.append(len(texts))
            return super().embed_documents(texts)

        def embed_query(self, text: str) -> list[float]:
            calls.append(1)
            return super().embed_query(text)

    pooled = bulk.Pooled(Counted(size=4))
    store = InMemoryVectorStore.from_documents([Document("Mr Lin.", metadata={"source": "a"})], pooled)
    chain = SelfRouteChain.from_vectorstore(store, FakeListChatModel(responses=["Mr Lin."]))
    rows = [{"question": f"Who is {number}?"} for number in range(5)]
    monkeypatch.setattr(bulk, "SLICE", 3)
    calls.clear()
    config = RunnableConfig(max_concurrency=2)
    assert await bulk.answer_all(chain, rows, out=tmp_path / "out.jsonl", config=config, prepare=pooled.prepare) == 0
    assert calls == [3, 2]
    assert (pooled.embed_query("Who is 9?"), calls) == (Counted(size=4).embed_query("Who is 9?"), [3, 2, 1, 1])


def test_bulk_files(tmp_path: Path) -> None:
    """Answers that were written whole are kept; questions are told by their words and id."""
    bulk, out = load("bulk"), tmp_path / "answers.jsonl"
    for end, kept in (("", 2), ('{"id": 3, "que', 2), ('{"id": 3, "question": "C?"}', 3)):
        out.write_text(f'{{"id": 1, "question": "A?"}}\n\n{{"id": 2, "question": "B?"}}\n{end}', "utf-8")
        assert len(bulk.read_answers(out)) == kept
        bulk.add_line(out, {"id": 4, "question": "D?"})
        assert [row["id"] for row in bulk.read_answers(out)] == [*range(1, kept + 1), 4]
    rows = tmp_path / "questions.jsonl"
    rows.write_text('{"question": "A?", "id": [1]}\n{"question": "A?", "id": [2]}\n', "utf-8")
    assert len(bulk.read_rows(rows)) == 2
    rows.write_text('{"question": "A?", "error": "No."}\n', "utf-8")  # what failed in another run
    assert bulk.read_rows(rows) == [{"question": "A?"}]
    rows.write_text('{"query": "A?"}\n', "utf-8")
    with pytest.raises(ValueError, match="there is no question in"):
        bulk.read_rows(rows)


async def test_bulk_asks_again_what_failed(tmp_path: Path) -> None:
    bulk, seen = load("bulk"), []

    def answer(prompt: Any) -> str:
        seen.append(question_in(prompt.to_string()))
        if "B?" in seen[-1] and len(seen) < 4:
            raise ValueError(seen[-1])
        return ANSWER

    chain = SelfRouteChain(
        retriever=RunnableLambda(lambda _: [Document("x")]), llm=RunnableLambda(answer), documents=[Document("x")]
    )
    (tmp_path / "questions.txt").write_text("A?\n\n B? \nC?\nA?\n")
    rows, out = bulk.read_rows(tmp_path / "questions.txt"), tmp_path / "answers.jsonl"
    config = RunnableConfig(max_concurrency=1)
    assert await bulk.answer_all(chain, rows, out=out, config=config) == 1
    assert [row["question"] for row in rows_in(tmp_path / "answers.failed.jsonl")] == ["B?"]
    assert await bulk.answer_all(chain, rows, out=out, config=config) == 0
    assert sorted(seen) == ["A?", "B?", "B?", "C?"]
    first, second, last = (row["question"] for row in rows_in(out))
    assert ({first, second}, last) == ({"A?", "C?"}, "B?")
    assert not (tmp_path / "answers.failed.jsonl").exists()
    assert await bulk.answer_all(chain, rows, out=out, config=config) == 0
    assert len(seen) == 4
