"""Questions asked through the providers' batch files get the answers that asking them at once gets."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from examples_parts import LangChainWords
from loopback import GEMINI_TOO_LONG, SERVER_ERROR, TOO_LONG_TYPED, LoopbackServer, Reply, Request
from selfroute import cli
from selfroute.command import with_langchain
from selfroute.command.batch_files import FORMATS, Format, files_of, read_results

Json = dict[str, Any]

FERRY = "# Ferry\n\nThe ferry leaves Haldon pier at seven in the morning. On Sundays nobody sails.\n"
CREW = f"# Crew\n\n{'The captain steers a boat with two masts. ' * 700}Orla Finn is the captain.\n"
FILES = ["ferry.md", "crew.md"]
WHEN, WHO = "When does the ferry leave Haldon pier?", "Who is the captain of the boat?"
K = ["--k", "2"]
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY")


@dataclass
class Result:
    """How a call of the command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Json:
        return dict(json.loads(self.out))


Run = Callable[..., Result]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """The command without any key, in a folder with two documents and two questions."""
    monkeypatch.setattr(with_langchain, "load_embeddings", lambda _name: LangChainWords())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in (*KEYS, "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    Path("ferry.md").write_text(FERRY)
    Path("crew.md").write_text(CREW)
    write("questions.jsonl", [{"id": 1, "question": WHEN}, {"id": 2, "question": WHO}])

    def call(*args: object) -> Result:
        code = cli.main([*map(str, args)])
        printed = capsys.readouterr()
        return Result(code, printed.out, printed.err)

    return call


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(declining) as started:
        yield started


def write(name: str | Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path = Path(name)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def rows_in(name: str | Path) -> list[Json]:
    return [json.loads(line) for line in Path(name).read_text().splitlines()]


def step(request: Request) -> str:
    """Which step asks: each prompt is longer than that of the step before."""
    return "rag" if len(request.prompt) < 3_500 else "wider" if len(request.prompt) < 7_000 else "long_context"


def declining(request: Request) -> str:
    """Answer about the ferry at once, and about the captain from the whole document."""
    if WHEN in request.prompt:
        return "At seven in the morning."
    return "Orla Finn." if step(request) == "long_context" else "unanswerable"


@dataclass(frozen=True)
class Provider:
    """What a provider does with a file of requests: here a loopback server answers each.

    Attributes:
        model: A model of it.
        path: The path of a request.
        parts: The names of the id and the body in a request's line.
        result: Makes the line of a result from its id, status and body.
        expired: Makes the line of a request that was not processed in time.
        too_long: How the provider answers a prompt that is too long.
    """

    model: str
    path: str
    parts: tuple[str, str]
    result: Callable[[str, int, Json], Json]
    expired: Callable[[str], Json]
    too_long: Reply

    def base_url(self, server: LoopbackServer) -> str:
        return server.openai_url if self.model.startswith("openai") else server.gemini_url

    def process(self, server: LoopbackServer, file: str | Path) -> list[Json]:
        """Return the lines of the results of a file of requests."""
        name, body = self.parts
        lines = []
        for request in rows_in(file):
            reply = httpx.post(f"{server.gemini_url}{self.path}", json=request[body])
            lines.append(self.result(request[name], reply.status_code, reply.json()))
        return lines


def of_openai(name: str, status: int, body: Json) -> Json:
    response = {"status_code": status, "request_id": "req_1", "body": body}
    return {"id": "batch_req_1", "custom_id": name, "response": response, "error": None}


def of_anthropic(name: str, status: int, body: Json) -> Json:
    if status == 200:
        return {"custom_id": name, "result": {"type": "succeeded", "message": body}}
    kind = "invalid_request_error" if status == 400 else "api_error"
    error = {"type": "error", "error": {"type": kind, "message": body["error"]["message"]}}
    return {"custom_id": name, "result": {"type": "errored", "error": error}}


def of_gemini(name: str, status: int, body: Json) -> Json:
    if status == 200:
        return {"key": name, "response": body}
    return {"key": name, "error": {"code": 3 if status == 400 else 13, "message": body["error"]["message"]}}


EXPIRED = {
    "code": "batch_expired",
    "message": "This request could not be executed before the completion window expired.",
}
TOO_LONG = Reply(
    status=400,
    error={"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"},
)
PROVIDERS = {
    "openai": Provider(
        "openai:gpt-4o-mini",
        "/v1/chat/completions",
        ("custom_id", "body"),
        of_openai,
        lambda name: {"id": "batch_req_1", "custom_id": name, "response": None, "error": EXPIRED},
        TOO_LONG_TYPED,
    ),
    "anthropic": Provider(
        "anthropic:claude-haiku-4-5",
        "/v1/messages",
        ("custom_id", "params"),
        of_anthropic,
        lambda name: {"custom_id": name, "result": {"type": "expired"}},
        TOO_LONG,
    ),
    "google_genai": Provider(
        "google_genai:gemini-2.5-flash",
        "/v1beta/models/gemini-2.5-flash:generateContent",
        ("key", "request"),
        of_gemini,
        lambda name: {
            "key": name,
            "error": {"code": 4, "message": "Deadline expired before the request was processed."},
        },
        GEMINI_TOO_LONG,
    ),
}
OPENAI = PROVIDERS["openai"]
each_provider = pytest.mark.parametrize("provider", PROVIDERS.values(), ids=PROVIDERS)


def begin(run: Run, provider: Provider = OPENAI, *options: str) -> Path:
    """Export the drafts; return their file."""
    begun = run("batch", "export", *FILES, "--questions", "questions.jsonl", "--model", provider.model, *K, *options)
    assert begun.code == 0, begun.err
    return Path("batch/requests-1.jsonl")


def import_(run: Run, lines: Sequence[Json], name: str = "results.jsonl") -> Json:
    imported = run("batch", "import", write(name, lines), "--json")
    assert imported.code == 0, imported.err
    return imported.json


def finish(run: Run, server: LoopbackServer, provider: Provider = OPENAI) -> list[Json]:
    """Go on until nothing is left to ask; return the answers."""
    for _ in range(6):
        exported = run("batch", "export", "--json")
        assert exported.code == 0, exported.err
        if not (files := exported.json["files"]):
            break
        for file in files:
            import_(run, provider.process(server, file["file"]))
    return rows_in("batch/answers.jsonl")


def told(row: Mapping[str, Any]) -> Json:
    """What must be the same whichever way a question was asked."""
    usage = {name: row["usage"][name] for name in ("rag", "wider", "long_context", "total_tokens", "estimated")}
    citations = [citation["text"] for citation in row["citations"]]
    kept = {name: row[name] for name in ("question", "answer", "route", "answerable", "decision")}
    return {**kept, "usage": usage, "citations": citations}


def bodies(server: LoopbackServer) -> set[str]:
    return {json.dumps(entry.request.body, sort_keys=True) for entry in server.book}


def when_asked(**replies: str | Reply) -> Callable[[Request], str | Reply]:
    """Reply by step; about the ferry at once."""
    return lambda request: declining(request) if WHEN in request.prompt else replies[step(request)]


SCENARIOS: dict[str, tuple[list[str], Callable[[Request], str | Reply]]] = {
    "the drafts answer": ([], when_asked(rag="Orla Finn.")),
    "one is declined and then answered": ([], declining),
    "one is declined twice": ([], when_asked(rag="unanswerable", long_context="unanswerable")),
    "one is in doubt": (["--graded"], when_asked(rag="80 42\nMr Lin.", long_context="Orla Finn.")),
    "one has no prospect": (["--graded"], when_asked(rag="10 0\nunanswerable")),
    "a wider look answers": (["--widen", "4"], when_asked(rag="unanswerable", wider="Orla Finn.")),
    "a wider look declines": (["--widen", "4"], declining),
}


@each_provider
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_batches_give_what_asking_gives_by_the_same_requests(
    run: Run, server: LoopbackServer, monkeypatch: pytest.MonkeyPatch, provider: Provider, scenario: str
) -> None:
    options, server.answer = SCENARIOS[scenario]
    for name in KEYS:
        monkeypatch.setenv(name, "none")
    model = ["--model", provider.model, "--base-url", provider.base_url(server)]
    asked = run("ask", *FILES, "-q", WHEN, "-q", WHO, "--json", *model, *K, *options)
    assert asked.code == 0, asked.err
    sent = bodies(server)
    server.book.clear()
    first = begin(run, provider, *options)
    import_(run, provider.process(server, first))
    answers = finish(run, server, provider)
    assert [told(row) for row in answers] == [told(json.loads(line)) for line in asked.out.splitlines()]
    assert bodies(server) == sent
    assert [row["id"] for row in answers] == [1, 2]


@each_provider
def test_a_prompt_that_is_too_long_is_cut_and_asked_next(run: Run, server: LoopbackServer, provider: Provider) -> None:
    def answer(request: Request) -> str | Reply:
        return provider.too_long if len(request.prompt) > 25_000 else declining(request)

    server.answer = answer
    import_(run, provider.process(server, begin(run, provider)))
    answers = finish(run, server, provider)
    assert (answers[1]["answer"], answers[1]["route"]) == ("Orla Finn.", "long_context")
