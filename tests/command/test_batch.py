"""Questions asked through the providers' batch files get the answers that asking them at once gets."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest
from typing_extensions import override

from command_parts import QUESTION, Run
from loopback import GEMINI_SERVER_ERROR, GEMINI_TOO_LONG, SERVER_ERROR, TOO_LONG_TYPED, LoopbackServer, Reply, Request
from selfroute.usage import prices
from selfroute_workbench.command import asking
from selfroute_workbench.command.batch_files import FORMATS, RequestFiles
from selfroute_workbench.command.batch_files import Request as BatchRequest
from selfroute_workbench.command.batch_results import read_results
from word_vectors import LangChainWords

Json = dict[str, Any]

CREW = f"# Crew\n\n{'The captain steers a boat with two masts. ' * 700}Orla Finn is the captain.\n"
FILES = ["ferry.md", "crew.md"]
WHEN, WHO = QUESTION, "Who is the captain of the boat?"
K, SECTIONS = ["--k", "2"], ["--sections", "1200"]
NESTED = "[" * 100_000
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY")


@pytest.fixture
def run(run: Run) -> Run:
    """The command in a folder with two documents and two questions."""
    Path("crew.md").write_text(CREW)
    write("questions.jsonl", [{"id": 1, "question": WHEN}, {"id": 2, "question": WHO}])
    return run


@pytest.fixture
def server(server: LoopbackServer) -> LoopbackServer:
    server.answer = declining
    return server


def write(name: str | Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path = Path(name)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def rows_in(name: str | Path) -> list[Json]:
    return [json.loads(line) for line in Path(name).read_text().splitlines()]


def step(request: Request) -> str:
    """Which step asks: each prompt is longer than that of the step before."""
    return "rag" if len(request.prompt) < 3_500 else "sections" if len(request.prompt) < 7_000 else "long_context"


def declining(request: Request) -> str:
    """Answer about the ferry at once, and about the captain from the whole document."""
    if WHEN in request.prompt:
        return "At seven in the morning."
    return "Orla Finn." if step(request) == "long_context" else "unanswerable"


@dataclass(frozen=True)
class Provider:
    """What a provider does with a file of requests: here a loopback server answers each."""

    model: str
    path: str  # of a request
    parts: tuple[str, str]  # the names of the id and the body in a request's line
    result: Callable[[str, int, Json], Json]  # the line of a result: of its id, status and body
    expired: Callable[[str], Json]  # the line of a request that was not processed in time
    too_long: Reply

    def base_url(self, server: LoopbackServer) -> str:
        return server.openai_url if self.model.startswith("openai") else server.gemini_url

    def process(self, server: LoopbackServer, file: str | Path) -> list[Json]:
        """Return the lines of the results of a file of requests."""
        name, body = self.parts
        with httpx.Client(base_url=server.gemini_url) as client:
            replies = [(row[name], client.post(self.path, json=row[body])) for row in rows_in(file)]
        return [self.result(given, reply.status_code, reply.json()) for given, reply in replies]


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


EXPIRED = {"code": "batch_expired", "message": "This request was not executed before the completion window expired."}
DEADLINE = {"code": 4, "message": "Deadline expired before the request was processed."}
TOO_LONG = Reply(
    status=400,
    error={"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"},
)
PROVIDERS = {
    "openai": Provider(
        "openai:gpt-4o-mini", "/v1/chat/completions", ("custom_id", "body"), of_openai,
        lambda name: {"id": "batch_req_1", "custom_id": name, "response": None, "error": EXPIRED}, TOO_LONG_TYPED,
    ),
    "anthropic": Provider(
        "anthropic:claude-haiku-4-5", "/v1/messages", ("custom_id", "params"), of_anthropic,
        lambda name: {"custom_id": name, "result": {"type": "expired"}}, TOO_LONG,
    ),
    "google_genai": Provider(
        "google_genai:gemini-2.5-flash", "/v1beta/models/gemini-2.5-flash:generateContent", ("key", "request"),
        of_gemini, lambda name: {"key": name, "error": DEADLINE}, GEMINI_TOO_LONG,
    ),
}  # fmt: skip
OPENAI = PROVIDERS["openai"]
each_provider = pytest.mark.parametrize("provider", PROVIDERS.values(), ids=PROVIDERS)
one_provider = pytest.mark.parametrize(
    "provider",
    [
        pytest.param(each, id=name, marks=[] if each is OPENAI else pytest.mark.matrix)
        for name, each in PROVIDERS.items()
    ],
)


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
    usage = {name: row["usage"][name] for name in ("rag", "sections", "long_context", "total_tokens", "estimated")}
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
    "sections answer": (SECTIONS, when_asked(rag="unanswerable", sections="Orla Finn.")),
    "sections decline": (SECTIONS, declining),
    "two rungs decline": (["--sections", "1200,1500", "--graded"], declining),
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


@one_provider
def test_a_prompt_that_is_too_long_is_cut_and_asked_next(run: Run, server: LoopbackServer, provider: Provider) -> None:
    def answer(request: Request) -> str | Reply:
        return provider.too_long if len(request.prompt) > 25_000 else declining(request)

    server.answer = answer
    import_(run, provider.process(server, begin(run, provider)))
    answers = finish(run, server, provider)
    assert (answers[1]["answer"], answers[1]["route"]) == ("Orla Finn.", "long_context")


def test_no_order_of_results_and_no_other_line_changes_an_answer(run: Run, server: LoopbackServer) -> None:
    write("questions.jsonl", [{"question": f"{WHO} {number}"} for number in range(8)] + [{"question": WHEN}])
    lines = OPENAI.process(server, begin(run))
    lines.sort(key=lambda line: line["custom_id"])  # a digest
    foreign = of_openai("0123456789-1", 200, lines[0]["response"]["body"])
    told = [import_(run, [foreign, *lines[:4]]), import_(run, lines[4:])]
    assert [one["results"]["replies"] for one in told] == [4, 5]
    assert [one["results"]["other_jobs"] for one in told] == [1, 0]
    assert (told[1]["next"], told[1]["answered"], told[1]["waiting"]) == (8, 1, 0)
    assert [row["answer"] for row in finish(run, server)] == ["Orla Finn."] * 8 + ["At seven in the morning."]


def test_importing_twice_changes_nothing(run: Run, server: LoopbackServer) -> None:
    first = OPENAI.process(server, begin(run))
    import_(run, first)
    kept = {path: path.read_bytes() for path in Path("batch").iterdir()}
    again = import_(run, first)
    assert again["results"] == {"replies": 0, "errors": 0, "known": 2, "other_jobs": 0}
    assert {path: path.read_bytes() for path in Path("batch").iterdir()} == kept
    answers = finish(run, server)
    import_(run, first)
    assert rows_in("batch/answers.jsonl") == answers


def test_a_crash_before_the_state_is_written_costs_nothing(run: Run, server: LoopbackServer) -> None:
    state = Path("batch/state.jsonl")
    requests = begin(run)
    begun = state.read_bytes()
    results = OPENAI.process(server, requests)
    assert import_(run, results)["next"] == 1
    state.write_bytes(begun)
    again = import_(run, results)
    assert (again["results"]["known"], again["next"]) == (2, 1)
    judged = state.read_bytes()
    assert run("batch", "export").code == 0
    state.write_bytes(judged)
    assert run("batch", "export").code == 0
    assert rows_in("batch/requests-3.jsonl") == rows_in("batch/requests-2.jsonl")
    assert import_(run, OPENAI.process(server, "batch/requests-2.jsonl"))["answered"] == 2


def test_nothing_is_lost_of_a_file_that_is_cut_off(run: Run, server: LoopbackServer) -> None:
    whole = write("results.jsonl", OPENAI.process(server, begin(run))).read_bytes()
    Path("cut.jsonl").write_bytes(whole[: len(whole) * 3 // 4])
    cut = run("batch", "import", "cut.jsonl")
    assert cut.code == 1
    assert "cut.jsonl is cut off in its last line: download it again" in cut.out
    assert "Questions: 1 answered, 1 waiting for results" in cut.out
    assert run("batch", "import", "results.jsonl").code == 0
    assert len(finish(run, server)) == 2


@pytest.mark.parametrize("line", ["Bad gateway", NESTED, f'{{"custom_id": "a", "response": {NESTED}'])
def test_lines_that_cannot_be_read_are_told_and_the_others_taken(run: Run, server: LoopbackServer, line: str) -> None:
    results = OPENAI.process(server, begin(run))
    first, second = results
    deep: Any = 1
    for _ in range(600):
        deep = [deep]
    unread = {**second, "response": {**second["response"], "body": {**second["response"]["body"], "deep": deep}}}
    lines = [json.dumps(first), line, json.dumps(unread), json.dumps(of_openai("a-1", 10**30, {}))]
    Path("results.jsonl").write_text("\n".join(lines))
    imported = run("batch", "import", "results.jsonl", "--json")
    assert (imported.code, imported.json["results"]["replies"]) == (1, 1), imported.err
    assert imported.json["unreadable_lines"] == {"results.jsonl": [2, 3]}
    assert imported.json["cut_off"] == ["results.jsonl"]
    Path("results.jsonl").write_text(f"{line}\n{json.dumps(second)}\n")
    told = run("batch", "import", "results.jsonl")
    assert (told.code, "1 line of results.jsonl that cannot be read, first line 1" in told.words) == (1, True)
    assert len(finish(run, server)) == 2


def test_what_has_no_result_is_asked_again_only_on_request(run: Run, server: LoopbackServer) -> None:
    requests = rows_in(begin(run))
    results = OPENAI.process(server, "batch/requests-1.jsonl")
    import_(run, results[:1])
    waiting = run("batch", "export")
    assert "Nothing is written" in waiting.out
    assert "selfroute batch export --again --job batch" in waiting.words
    assert run("batch", "export", "--again").code == 0
    assert rows_in("batch/requests-2.jsonl") == requests[1:]
    import_(run, results[1:])  # of the first time
    assert len(finish(run, server)) == 2


@one_provider
def test_what_failed_or_expired_is_told_and_asked_again(run: Run, server: LoopbackServer, provider: Provider) -> None:
    error = GEMINI_SERVER_ERROR if provider.parts[0] == "key" else SERVER_ERROR
    server.answer = lambda _request: error
    requests = rows_in(begin(run, provider))
    [failed, _] = provider.process(server, "batch/requests-1.jsonl")
    bad = [failed, provider.expired(requests[1][provider.parts[0]])]
    first = import_(run, bad)
    assert (first["failed"], first["results"]["errors"], first["ledger"]["failed"]) == (2, 2, 2)
    errors = [row["error"] for row in rows_in("batch/answers.jsonl")]
    assert re.search("error", errors[0]), errors
    assert re.search("expired", errors[1]), errors
    assert run("batch", "export").code == 0
    import_(run, bad)  # of the first time: they say nothing of the second
    asked = rows_in("batch/requests-2.jsonl")
    assert [row[provider.parts[1]] for row in asked] == [row[provider.parts[1]] for row in requests]
    assert not {row[provider.parts[0]] for row in asked} & {row[provider.parts[0]] for row in requests}
    server.answer = declining
    import_(run, provider.process(server, "batch/requests-2.jsonl"))
    answers = finish(run, server, provider)
    assert [row["answer"] for row in answers] == ["At seven in the morning.", "Orla Finn."]
    assert import_(run, bad)["ledger"]["failed"] == 0


def test_a_reply_that_was_filtered_is_an_error(run: Run, server: LoopbackServer) -> None:
    server.answer = lambda _request: Reply("", finish="content_filter")
    import_(run, OPENAI.process(server, begin(run)))
    assert {row["error"].partition(":")[0] for row in rows_in("batch/answers.jsonl")} == {"NoReplyError"}
    server.answer = declining
    assert len(finish(run, server)) == 2


def test_requests_on_one_document_follow_one_another(run: Run, server: LoopbackServer) -> None:
    Path("other.md").write_text(CREW.replace("captain", "pilot").replace("boat", "barge"))
    names = ["captain of the boat", "pilot of the barge"] * 3
    write("questions.jsonl", [{"question": f"Who is the {name}, {number}?"} for number, name in enumerate(names)])
    model = ["--model", OPENAI.model, "--k", "1"]
    run("batch", "export", *FILES, "other.md", "--questions", "questions.jsonl", *model)
    import_(run, OPENAI.process(server, "batch/requests-1.jsonl"))
    run("batch", "export")
    asked = [row["body"]["messages"][-1]["content"] for row in rows_in("batch/requests-2.jsonl")]
    assert ["pilot" in prompt[:2_000] for prompt in asked] in ([False] * 3 + [True] * 3, [True] * 3 + [False] * 3)


def test_requests_are_marked_for_the_prompt_cache_as_they_are_at_the_providers_address(
    run: Run, server: LoopbackServer
) -> None:
    write("questions.jsonl", [{"question": f"{WHO} {number}"} for number in range(2)])
    import_(run, OPENAI.process(server, begin(run, replace(OPENAI, model="openai:gpt-5.6"))))
    assert run("batch", "export").code == 0
    first, second = (row["body"] for row in rows_in("batch/requests-2.jsonl"))
    assert first["prompt_cache_key"] == second["prompt_cache_key"]
    assert first["messages"][0]["content"][0] == second["messages"][0]["content"][0]
    assert "prompt_cache_breakpoint" in first["messages"][0]["content"][0]


def test_two_models_have_files_of_their_own(run: Run, server: LoopbackServer) -> None:
    import_(run, OPENAI.process(server, begin(run, OPENAI, "--long-context-model", "google_genai:gemini-2.5-flash")))
    told = run("batch", "export")
    assert "requests-2.jsonl: 1 request to google_genai:gemini-2.5-flash" in told.out
    import_(run, PROVIDERS["google_genai"].process(server, "batch/requests-2.jsonl"))
    assert rows_in("batch/answers.jsonl")[1]["answer"] == "Orla Finn."


def test_what_failed_elsewhere_can_be_asked_and_the_same_question_twice_is_asked_once(
    run: Run, server: LoopbackServer
) -> None:
    failed = {"id": 7, "question": WHEN, "error": "RateLimitError: slow down", "usage": "?"}
    write("questions.jsonl", [failed, *({"id": number, "question": WHO} for number in (1, 2, 2))])
    requests = begin(run)
    assert len(rows_in(requests)) == 2
    import_(run, OPENAI.process(server, requests))
    answers = finish(run, server)
    assert [(row["id"], row["answer"]) for row in answers] == [
        (7, "At seven in the morning."), (1, "Orla Finn."), (2, "Orla Finn.")
    ]  # fmt: skip
    assert not [row for row in answers if "error" in row]


def test_files_are_no_longer_than_the_provider_takes(tmp_path: Path) -> None:
    asked = [BatchRequest("openai:m", "https://x/v1/y", {"n": number}) for number in range(5)]
    line = len(json.dumps(FORMATS["openai"].line("0", asked[0]))) + 1
    for limits in ({"max_requests": 2}, {"max_bytes": 2 * line}):
        folder = tmp_path / next(iter(limits))
        with RequestFiles(folder, formats={"openai": FORMATS["openai"]._replace(**limits)}) as files:
            for number, request in enumerate(asked):
                files.add(str(number), request)
        sizes = [len(rows_in(folder / f"requests-{number}.jsonl")) for number in (1, 2, 3)]
        assert (sizes, [one["requests"] for one in files.written()]) == ([2, 2, 1], [2, 2, 1])


@pytest.mark.parametrize(
    ("line", "status", "words"),
    [
        ({"custom_id": "a", "response": None, "error": EXPIRED}, 500, "completion window expired"),
        (of_openai("a", 429, {"error": {"message": "slow down"}}), 429, "slow down"),
        ({"custom_id": "a", "result": {"type": "canceled"}}, 500, "was canceled"),
        ({"custom_id": "a", "result": {"type": "expired"}}, 500, "expired before"),
        (of_anthropic("a", 529, {"error": {"message": "Overloaded"}}), 500, "Overloaded"),
        ({"key": "a", "status": {"code": 8, "message": "no quota"}}, 500, "no quota"),
        ({"key": "a", "error": {"code": 400, "message": "bad", "status": "INVALID_ARGUMENT"}}, 400, "bad"),
    ],
)
def test_errors_in_results_reach_the_client_as_errors(tmp_path: Path, line: Json, status: int, words: str) -> None:
    [result] = read_results(write(tmp_path / "results.jsonl", [line])).results
    assert (result.id, result.status, result.replied) == ("a", status, False)
    assert words in json.dumps(result.body)


@pytest.mark.parametrize(
    ("model", "per_input", "per_output"),
    [("openai:gpt-5-mini", "0.125e-6", "1e-6"), ("anthropic:claude-haiku-4-5", "0.5e-6", "2.5e-6")],
)
def test_costs_are_those_of_batches(
    run: Run, server: LoopbackServer, model: str, per_input: str, per_output: str
) -> None:
    provider = PROVIDERS[model.partition(":")[0]]
    told = import_(run, provider.process(server, begin(run, replace(provider, model=model))))
    tokens = rows_in("batch/answers.jsonl")[0]["usage"]["rag"]["input_tokens"]
    assert tokens > 0
    assert Decimal(told["ledger"]["money"]["cost"]) == Decimal(per_input) * tokens + Decimal(per_output) * 5


def test_a_model_without_a_known_batch_price_has_no_cost(run: Run, server: LoopbackServer) -> None:
    told = import_(run, OPENAI.process(server, begin(run, replace(OPENAI, model="openai:gpt-3.5-turbo-16k"))))
    assert told["ledger"]["money"]["cost"] is None
    assert ["knows no batch price" in reason for reason in told["ledger"]["money"]["unpriced"]] == [True]
    assert prices.cost_of(prices.PricedModel("gpt-3.5-turbo-16k", "openai"), prices.StepUsage(1, 1)).dollars


def test_a_job_goes_on_only_with_the_documents_that_it_began_with(run: Run, server: LoopbackServer) -> None:
    results = OPENAI.process(server, begin(run))
    Path("crew.md").write_text("Nobody.")
    refused = run("batch", "import", write("results.jsonl", results))
    assert (refused.code, "crew.md has changed since the job began" in refused.err) == (2, True)
    Path("crew.md").write_text(CREW)
    import_(run, results)
    assert len(finish(run, server)) == 2


class OtherWords(LangChainWords):
    """Embeddings with which a question finds what was farthest before."""

    @override
    def embed_query(self, text: str) -> list[float]:
        return [-number for number in super().embed_query(text)]


def test_drafts_are_judged_with_the_passages_that_they_were_asked_with(
    run: Run, server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = ("--embeddings", "any")
    drafts = OPENAI.process(server, begin(run, OPENAI, *SECTIONS, *vectors))
    monkeypatch.setattr(asking, "load_embeddings", lambda _name: OtherWords())
    assert import_(run, drafts)["changed"] == 0
    assert [row["answer"] for row in finish(run, server)] == ["At seven in the morning.", "Orla Finn."]
    begin(run, OPENAI, *vectors, "--job", "other")
    first, other = (rows_in(f"{job}/requests-1.jsonl") for job in ("batch", "other"))
    assert not {row["custom_id"] for row in first} & {row["custom_id"] for row in other}


def test_a_question_that_would_be_asked_otherwise_today_is_asked_again(run: Run, server: LoopbackServer) -> None:
    results = OPENAI.process(server, begin(run))
    setup = rows_in("batch/job.json")
    write("batch/job.json", [{**setup[0], "k": 1}])  # as if another version retrieved otherwise
    imported = run("batch", "import", write("results.jsonl", results))
    assert "2 questions would be asked in other words than were exported" in imported.out
    assert len(finish(run, server)) == 2


DAMAGES: dict[str, Callable[[str], str | bytes]] = {
    "cut off": lambda text: text[: len(text) // 2],
    "no UTF-8": lambda text: text.encode()[:30] + b"\xff" + text.encode()[30:],
    "nested": lambda text: f"{NESTED}\n{text}",
    "a list": lambda text: f"[]\n{text}",
    "a key without quotes": lambda text: text.replace('"', "", 1),
    "text where it does not belong": lambda text: re.sub(
        r'("k"|"retrieved"|"status"): [^"]+?(, "|})', r'\1: "x"\2', text
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["job.json", "state.jsonl", "results.jsonl"])
def test_a_damaged_file_of_a_job_is_named_with_what_to_delete(
    run: Run, server: LoopbackServer, name: str, damage: str
) -> None:
    results = OPENAI.process(server, begin(run))
    import_(run, results)
    path = Path("batch", name)
    whole = path.read_text()
    changed = DAMAGES[damage](whole)
    path.write_bytes(changed if isinstance(changed, bytes) else changed.encode())
    refused = run("batch", "export")
    assert (refused.code, refused.out) == (2, ""), refused.err
    [line] = refused.err.splitlines()
    assert re.match(rf"selfroute: batch/{name}:\d ", line)
    assert "delete" in line
    if name == "results.jsonl":
        path.unlink()
        import_(run, results)
        assert run("batch", "export").code == 0
    else:
        path.write_text(whole)
        assert len(finish(run, server)) == 2


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["export"], "batch holds no job: begin one with selfroute batch export FILE..."),
        (["export", "ferry.md"], "a job begins with FILE..., --questions and --model"),
        (["export", "--k", "3"], "a job begins with FILE..., --questions and --model"),
        (["export", "ferry.md", "--questions", "no.txt", "--model", "openai:m"], "no.txt cannot be read: No such file"),
        (["export", "ferry.md", "--questions", "bad.jsonl", "--model", "openai:m"], "bad.jsonl:2: there is no quest"),
        (
            ["export", "ferry.md", "--questions", "questions.jsonl", "--model", "mistralai:m"],
            "there are batch files for the providers openai, anthropic, google_genai, not for 'mistralai'",
        ),
        (["import", "questions.jsonl"], "batch holds no job"),
    ],
)
def test_wrong_calls_say_what_to_do(run: Run, args: Sequence[str], words: str) -> None:
    write("bad.jsonl", [{"question": WHO}, {"query": WHO}])
    result = run("batch", *args)
    assert (result.code, words in result.err, Path("batch").exists()) == (2, True, False), result.err


def test_a_job_is_not_begun_twice_and_requests_are_no_results(run: Run) -> None:
    begin(run)
    again = run("batch", "export", *FILES, "--questions", "questions.jsonl", "--model", OPENAI.model)
    assert (again.code, "batch holds a job: continue it with --job batch alone" in again.err) == (2, True)
    wrong = run("batch", "import", "batch/requests-1.jsonl")
    assert (wrong.code, "requests-1.jsonl holds no results" in wrong.err) == (2, True)
