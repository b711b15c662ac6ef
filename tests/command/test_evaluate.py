"""`selfroute evaluate`: what it asks, what it prints and keeps, and how it ends."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from command_parts import Result, Run
from judge_parts import grade, is_judging
from loopback import RATE_LIMITED, LoopbackServer, Reply, Request, too_long_in_words

pytestmark = pytest.mark.usefixtures("one_certificate", "frozen")

HOUSE_JUDGE = ["--judge", "openai:house", "--judge-base-url", "http://127.0.0.1:9/v1"]
UNPRICED = ["--model", "openai:nobody-knows-me", "--base-url", "http://127.0.0.1:9/v1"]
HOURS = ["seven", "eight", "nine", "ten", "noon"]
PLACES = ["Haldon", "Brack", "Tarn", "Skerry", "Oban Head"]


def document(number: int) -> str:
    """A text of some 900 words in which one sentence, far from all others, tells when the ferry leaves."""
    filler = " ".join(f"Gull {n} of {PLACES[number]} sat on the rail." for n in range(100))
    return f"{filler} The ferry from {PLACES[number]} pier leaves at {HOURS[number]}. {filler}"


def answer(request: Request) -> Reply | str:
    """Answers where the sentence is in the prompt, and declines where it is not."""
    place = re.search(r"from (\w+(?: Head)?) pier leave", request.prompt.rpartition("Question:")[2])
    found = place and re.search(rf"from {place[1]} pier leaves at (\w+)", request.prompt)
    return found[1] if found else "unanswerable"


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """Five questions, each on a document of its own."""
    rows = []
    for number, place in enumerate(PLACES):
        (tmp_path / f"{number}.txt").write_text(document(number))
        asked = f"When does the ferry from {place} pier leave?"
        rows.append({"question": asked, "answers": [HOURS[number]], "document_file": f"{number}.txt"})
    path = tmp_path / "ferries.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def run(run: Run) -> Run:
    def call(*args: str | Path, url: str | None = None, model: str = "openai:gpt-4o-mini") -> Result:
        asked = ["--model", model, "--base-url", url] if url else []
        if model == "openai:gpt-4o-mini" and url:
            asked += ["--priced-as", model]  # the server's address is no provider's
        return run("evaluate", "--retriever", "bm25", *args, *asked)

    return call


def results(folder: str = "evaluation") -> dict[str, Any]:
    content: dict[str, Any] = json.loads((Path(folder) / "results.json").read_text())
    return content


def test_each_reply_is_asked_for_once_and_the_same_command_again_asks_for_nothing(run: Run, questions: Path) -> None:
    with LoopbackServer(answer) as server:
        first = run(questions, "--k", "1,2", url=server.openai_url)
        again = run(questions, "--k", "1,2", url=server.openai_url)
    assert (first.code, len(server.book)) == (0, 3 * len(PLACES)), first.err
    assert "self_route" in first.out
    assert again.out == first.out
    assert "15 replies were asked for, 0 were kept" in first.err
    assert "0 replies were asked for, 15 were kept" in again.err
    rows = [row for row in results()["results"] if row["k"] != 1]
    assert {(row["strategy"], row["score"]) for row in rows} == {
        (strategy, 1.0) for strategy in ("rag", "long_context", "self_route")
    }


def test_what_failed_is_listed_and_asked_again_by_the_next_run(run: Run, questions: Path) -> None:
    broken = True

    def sometimes(request: Request) -> Reply | str:
        return RATE_LIMITED if broken and "Tarn pier leave?" in request.prompt else answer(request)

    with LoopbackServer(sometimes) as server:
        result = run(questions, "--k", "2", "--concurrency", "2", url=server.openai_url)
        assert result.code == 1
        assert "3 tasks failed and are not scored" in result.err
        failures = results()["failures"]
        assert {(row["id"], row["strategy"]) for row in failures} == {
            ("3", strategy) for strategy in ("rag", "long_context", "self_route")
        }
        assert "RateLimitError" in failures[0]["error"]
        assert "3" not in {row["id"] for row in results()["results"]}
        broken, before = False, len(server.book)
        assert run(questions, "--k", "2", url=server.openai_url).code == 0
        assert len(server.book) == before + 2
    assert not results()["failures"]


def test_prompts_are_the_papers_with_numbered_chunks_of_300_words_or_the_whole_document(
    run: Run, questions: Path
) -> None:
    with LoopbackServer(answer) as server:
        run(questions, "--k", "2", "--limit", "1", url=server.openai_url)
    draft, long = (entry.request.prompt for entry in server.book)
    opening = "Read the following text and answer briefly.\n\n"
    end = 'write "unanswerable".\n\nQuestion: When does the ferry from Haldon pier leave?\nAnswer:'
    assert long.startswith(f"{opening}{document(0)}\n\nNow, answer")
    assert draft.endswith(end)
    assert long.endswith(end)
    passages = draft.removeprefix(opening).partition("\n\nNow, answer")[0].split("\n\n")
    assert [len(passage.split()) for passage in passages] == [301, 301]
    assert all(passage.partition(" ")[2] in document(0) for passage in passages)


def test_passages_stand_nearest_first_or_as_in_the_document(run: Run, questions: Path) -> None:
    with LoopbackServer(answer) as server:
        for order in ("score", "document"):
            run(questions, "--k", "3", "--limit", "1", "--order", order, "--out", order, url=server.openai_url)
    numbers = [
        re.findall(r"^\[(\d+)\]", entry.request.prompt, re.MULTILINE)
        for entry in server.book
        if "[1]" in entry.request.prompt
    ]
    assert numbers[1] == sorted(numbers[1])
    assert numbers[0] != numbers[1]
    assert numbers[0][0] == "4" or numbers[0][0] == "3"


def test_a_document_longer_than_the_window_is_cut_in_the_middle_and_counted(run: Run, questions: Path) -> None:
    with LoopbackServer(answer) as server:
        result = run(questions, "--window", "1500", "--strategies", "long_context", url=server.openai_url)
    assert result.code == 0
    for number, entry in enumerate(sorted(server.book, key=lambda entry: PLACES.index(place_in(entry.request.prompt)))):
        read = entry.request.prompt.partition("\n\n")[2].partition("\n\nNow, answer")[0]
        text = document(number)
        assert len(read) < len(text)
        assert text.startswith(read[:500])
        assert text.endswith(read[-500:])
    assert {row["cut"] for row in results()["results"]} == {True}
    assert "cut in the middle" in result.out


def place_in(prompt: str) -> str:
    return re.findall(r"from (\w+(?: Head)?) pier leave\?", prompt)[-1]  # type: ignore[no-any-return]


def test_a_dry_run_estimates_tokens_and_asks_nothing(run: Run, questions: Path) -> None:
    with LoopbackServer(answer) as server:
        dry = run(questions, "--k", "2", "--dry-run", url=server.openai_url)
        assert (dry.code, len(server.book)) == (0, 0)
        run(questions, "--k", "2", url=server.openai_url)
    estimated = [int(cell.replace(",", "")) for cell in dry.out.partition("all ")[2].split()[:5]]
    first, second = (
        [e for e in server.book if (document(0)[:3000] in e.request.prompt) == whole] for whole in (False, True)
    )
    assert estimated[:2] == [5, 5]
    assert estimated[3] == 5
    sent = sum(len(entry.request.prompt) for entry in server.book) // 4
    assert abs(estimated[2] + estimated[4] - sent) < 0.15 * sent
    assert first
    assert second


def test_a_dry_run_says_what_retrievers_download_and_counts_their_drafts(run: Run, questions: Path) -> None:
    dry = run(questions, "--retriever", "contriever", "--dry-run")
    said = dry.words
    assert dry.code == 0
    assert "The run downloads facebook/contriever" in said
    assert "without a download: --retriever all-MiniLM-L6-v2, bm25 or a folder with the weights." in said
    assert "downloads" not in run(questions, "--retriever", "all-MiniLM-L6-v2,window", "--dry-run").out
    with LoopbackServer(answer) as server:
        dry = run(questions, "--retriever", "bm25,tree", "--k", "2", "--dry-run", url=server.openai_url)
    assert dry.out.partition("all ")[2].split()[:2] == ["5", "10"]
    assert "Not counted: the summaries for tree" in dry.out


LONG = " ".join(f"Gull {n} of Haldon sat on the rail." for n in range(3_000))


@pytest.fixture
def long_question(tmp_path: Path) -> Path:
    """A question on a document of which sections are less than half."""
    text = f"{LONG} The ferry from Haldon pier leaves at seven. {LONG}"
    row = {"question": "When does the ferry from Haldon pier leave?", "answers": ["seven"], "document": text}
    path = tmp_path / "long.jsonl"
    path.write_text(json.dumps(row) + "\n")
    return path


def steered(request: Request) -> Reply | str:
    """Is never sure where it reads passages, and answers from whole documents."""
    if len(request.prompt) > len(LONG):
        return "seven"
    return "80 30\neight" if "two numbers" in request.prompt else "unanswerable"


def test_all_strategies_run_over_documents_and_share_what_they_read(run: Run, long_question: Path) -> None:
    with LoopbackServer(steered) as server:
        asked = (long_question, "--strategies", "all", "--sweep", "k=2,3")
        dry = run(*asked, "--dry-run", url=server.openai_url)
        assert not server.book
        result = run(*asked, url=server.openai_url)
        paid = len(server.book)
        assert run(*asked, url=server.openai_url).code == 0
    assert (result.code, paid, len(server.book)) == (0, 2 * 2 + 2 + 1, paid), result.err
    estimated = [int(cell.replace(",", "")) for cell in dry.out.partition("all ")[2].split()[:7]]
    assert (estimated[1], estimated[3], estimated[5]) == (4, 2, 1)
    sent = sum(len(entry.request.prompt) for entry in server.book) // 4
    assert abs(estimated[2] + estimated[4] + estimated[6] - sent) < 0.15 * sent
    found = results()
    routes = {(row["strategy"], row["k"]): row["route"] for row in found["results"]}
    steps = ("self_route", "sections", "graded", "graded_sections")
    assert routes == {
        ("long_context", None): "long_context",
        **{("rag", k): "rag" for k in (2, 3)},
        **{(strategy, k): "long_context" for strategy in steps for k in (2, 3)},
    }
    assert {(look["step"], look["confidence"]) for look in found["looks"]} == {
        ("rag", None),
        ("sections", None),
        ("graded", 30),
        ("graded_sections", 30),
        ("long_context", None),
    }
    read = [entry.request.prompt for entry in server.book if "[...]" in entry.request.prompt]
    assert len(read) == 2
    assert all(12_000 < len(text) < 18_000 for text in read)


def test_the_cap_ends_the_run_and_the_next_one_goes_on(run: Run, questions: Path) -> None:
    with LoopbackServer(lambda request: Reply(str(answer(request)), usage=True)) as server:
        result = run(questions, "--k", "2", "--max-cost", "0.0009", "--concurrency", "1", url=server.openai_url)
        assert result.code == 1
        assert "The run ended early: the next reply could pass the cap of $0.0009" in result.err
        asked = len(server.book)
        assert 0 < asked < 10
        assert run(questions, "--k", "2", url=server.openai_url).code == 0
        assert len(server.book) == 10


def test_a_model_with_a_name_of_its_own_is_priced_as_what_it_is_said_to_be(run: Run, questions: Path) -> None:
    priced = ["--priced-as", "openai:gpt-4o-mini"]
    with LoopbackServer(answer) as server:
        result = run(questions, *priced, "--max-cost", "1", url=server.openai_url, model="openai:house-model")
    assert result.code == 0, result.err
    money = next(table for table in results()["tables"] if table["name"] == "money")
    assert all(float(row[5]) > 0 for row in money["rows"])


def test_a_document_that_the_model_refuses_as_too_long_counts_as_cut(run: Run, questions: Path) -> None:
    def small(request: Request) -> Reply | str:
        return too_long_in_words(1500) if len(request.prompt) > 6000 else answer(request)

    with LoopbackServer(small) as server:
        result = run(questions, "--strategies", "long_context", url=server.openai_url, model="openai:house-model")
    assert result.code == 0, result.err
    assert {row["cut"] for row in results()["results"]} == {True}


def test_credentials_in_an_address_are_written_nowhere(run: Run, questions: Path) -> None:
    with LoopbackServer(answer) as server:
        run(questions, "--limit", "1", url=server.openai_url.replace("http://", "http://me:hunter22secret@"))
    assert results()["settings"]["base_url"] == server.openai_url
    files = [path for path in Path("evaluation").rglob("*") if path.is_file()]
    assert not [path for path in files if b"hunter22secret" in path.read_bytes()]


def test_a_capped_run_finishes_questions_of_all_data_sets(run: Run, questions: Path) -> None:
    rows = [json.loads(line) for line in questions.read_text().splitlines()]
    for name in ("north", "south"):
        (questions.parent / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with LoopbackServer(answer) as server:
        run("north.jsonl", "south.jsonl", "--max-cost", "0.002", "--concurrency", "1", url=server.openai_url)
    done = {(row["dataset"], row["id"], row["strategy"]) for row in results()["results"]}
    whole = {key[:2] for key in done if len([other for other in done if other[:2] == key[:2]]) == 3}
    assert {dataset for dataset, _ in whole} == {"north", "south"}
    assert len({key[:2] for key in done} - whole) <= 1


def test_a_wrong_key_ends_the_run_soon(run: Run, questions: Path) -> None:
    rows = questions.read_text().splitlines()
    questions.write_text("".join(f"{row}\n" for row in rows * 8))
    with LoopbackServer(lambda _request: Reply("", status=401)) as server:
        result = run(questions, "--concurrency", "2", url=server.openai_url)
    assert result.code == 1
    assert "the first 5 questions all failed" in result.err
    assert len(server.book) < 60


def knows_one(request: Request) -> str:
    if "Gull" not in request.prompt:
        return "seven" if "Haldon" in request.prompt else "unanswerable"
    return str(answer(request))


def explains(request: Request) -> str:
    if "Output the results in JSON format" in request.prompt:
        return '{"answerable": false, "reason": "D"}'
    return "unanswerable" if len(request.prompt) < len(document(0)) else str(answer(request))


# The option, who answers, whether a prompt is one that the option asks, and a table of the results with its first row.
MORE: dict[str, tuple[Callable[[Request], Any], Callable[[str], bool], str, list[Any] | None]] = {
    "--drop-closed-book": (
        knows_one, lambda prompt: "Gull" not in prompt, "closed_book", ["ferries", "questions", 5, 4]
    ),
    "--explain-declines": (explains, lambda prompt: "in JSON format" in prompt, "reasons", None),
    "--compare-based-only-on": (
        answer, lambda prompt: "based only on the provided passage" in prompt, "based_only_on", None
    ),
}  # fmt: skip


@pytest.mark.parametrize("option", MORE)
def test_an_option_asks_once_more_for_each_question_and_has_a_table(run: Run, questions: Path, option: str) -> None:
    replies, asks_more, table, row = MORE[option]
    with LoopbackServer(replies) as server:
        result = run(questions, "--k", "1", option, url=server.openai_url)
    assert result.code == 0, result.err
    assert len([entry for entry in server.book if asks_more(entry.request.prompt)]) == len(PLACES)
    tables = {one["name"]: one for one in results()["tables"]}
    assert row in (None, tables[table]["rows"][0])
    assert [one["letter"] for one in results()["reasons"]] == ["D"] * len(PLACES) * (option == "--explain-declines")


def and_judges(request: Request) -> Reply | str:
    return grade(request.prompt) if is_judging(request.prompt) else answer(request)


@pytest.mark.parametrize(
    "judge",
    [
        ["--judge"],
        pytest.param(["--judge", "openai:gpt-4o"], marks=pytest.mark.matrix),
        pytest.param(["--judge=openai:gpt-4o"], marks=pytest.mark.matrix),
    ],
    ids=str,
)
def test_a_judge_is_asked_once_for_each_question_and_shown(run: Run, questions: Path, judge: list[str]) -> None:
    Path("grades.jsonl").write_text('{"id": "1", "rag": 1, "long_context": 0.5}\n')
    # after --judge a file is a file, and an option an option
    given = [*judge, questions, "--k", "2"] if len(judge) == 2 else ["--k", "2", *judge, questions]
    with LoopbackServer(and_judges) as server:
        result = run(*given, "--grades", "grades.jsonl", url=server.openai_url)
        assert run(*given, "--grades", "grades.jsonl", url=server.openai_url).out == result.out
    assert result.code == 0, result.err
    judging = [entry.request.model for entry in server.book if is_judging(entry.request.prompt)]
    assert judging == ["gpt-4o-mini" if judge == ["--judge"] else "gpt-4o"] * len(PLACES)
    assert len(server.book) == 3 * len(PLACES)
    assert "Judged by meaning, Self-Route scores 100.00" in result.out
    assert "The judge and the other grades" in result.out
    rows = results()["results"]
    assert {(row["judged"], row["judged_by"]) for row in rows} == {(1.0, "model")}
    assert "How answers were judged" in Path("evaluation/report.html").read_text()


def test_a_judge_is_estimated_paid_for_and_capped(run: Run, questions: Path) -> None:
    judge = ["--judge", "openai:house-judge", "--judge-priced-as", "openai:gpt-4"]
    with LoopbackServer(and_judges) as server:
        plain = run(questions, "--k", "2", "--dry-run", url=server.openai_url)
        dry = run(questions, "--k", "2", "--dry-run", *judge, url=server.openai_url)
        assert not server.book
        cost, dearer = (float(each.out.partition("all ")[2].split("\n")[0].split()[-1]) for each in (plain, dry))
        assert dearer > 2 * cost
        assert "judge calls" in dry.out
        capped = run(questions, "--k", "2", *judge, "--max-cost", "0.03", "--concurrency", "1", url=server.openai_url)
        assert capped.code == 1
        assert "could pass the cap of $0.03" in capped.err
        judged = sum(is_judging(entry.request.prompt) for entry in server.book)
        assert judged < len(PLACES)
        assert run(questions, "--k", "2", *judge, url=server.openai_url).code == 0
    assert len(server.book) == 3 * len(PLACES)


def test_a_judge_on_a_server_of_its_own(run: Run, questions: Path) -> None:
    with LoopbackServer(answer) as server, LoopbackServer(and_judges) as other:
        judge = ["--judge", "openai:local", "--judge-base-url", other.openai_url]
        result = run(questions, *judge, url=server.openai_url)
    assert result.code == 0, result.err
    assert (len(server.book), len(other.book)) == (2 * len(PLACES), len(PLACES))
    assert all(is_judging(entry.request.prompt) for entry in other.book)


def test_what_the_judge_could_not_grade_is_a_failure_and_tried_again(run: Run, questions: Path) -> None:
    broken = True

    def sometimes(request: Request) -> Reply | str:
        if not (is_judging(request.prompt) and broken):
            return and_judges(request)
        return "I am sure." if "Tarn" in request.prompt else RATE_LIMITED if "Brack" in request.prompt else "1: 1"

    with LoopbackServer(sometimes) as server:
        result = run(questions, "--k", "2", "--judge", "--concurrency", "1", url=server.openai_url)
        assert result.code == 1
        assert {(row["strategy"], row["id"]) for row in results()["failures"]} == {("judge", "2"), ("judge", "3")}
        assert {row["id"] for row in results()["results"] if row["judged"] is None} == {"2", "3"}
        broken, before = False, len(server.book)
        assert run(questions, "--k", "2", "--judge", url=server.openai_url).code == 0
    assert len(server.book) == before + 2
    assert not results()["failures"]


def test_json_is_all_that_is_printed(run: Run, questions: Path) -> None:
    with LoopbackServer(answer) as server:
        result = run(questions, "--json", url=server.openai_url)
    printed = json.loads(result.out)
    assert printed["settings"]["model"] == "openai:gpt-4o-mini"
    assert printed["tables"][0]["name"] == "main"
    assert "Self-Route scores 100.00" in printed["summary"][0]


def test_everything_is_in_the_folder_and_no_key_is(run: Run, questions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-indeed")
    with LoopbackServer(answer) as server:
        run(questions, "--out", "here", "--drop-closed-book", url=server.openai_url)
    assert server.book[0].request.headers["authorization"] == "Bearer sk-very-secret-indeed"
    files = {str(path.relative_to("here")) for path in Path("here").rglob("*") if path.is_file()}
    assert {"replies.jsonl", "results.json", "questions.csv", "report.html", "tables/main.csv"} <= files
    assert any(name.endswith(".png") for name in files)
    assert not [path for path in Path("here").rglob("*") if path.is_file() and b"very-secret" in path.read_bytes()]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["nobody"], "nobody"),
        (["ferries.jsonl", "other/ferries.jsonl"], "question '1' of 'ferries' is there twice"),
        (["ferries.jsonl", "--max-cost", "1", *UNPRICED], "no price is known"),
        (["ferries.jsonl", "--retriever", "bm25,/no/such/folder"], "without a download"),
        (["ferries.jsonl", "--retriever", "bm25,window", "--strategies", "long_context"], "add rag to --strategies"),
        (["ferries.jsonl", "--retriever", ","], "--retriever takes names"),
        (["ferries.jsonl", "--retriever", "bm52"], "no retriever 'bm52': is it bm25?"),
        (["ferries.jsonl", "--retriever", "contreiver"], "no retriever 'contreiver': is it contriever?"),
        (["ferries.jsonl", "--retriever", "dragonn", "--dry-run"], "no retriever 'dragonn': is it dragon?"),
        (["ferries.jsonl", "--sweep", "5"], "--sweep"),
        (["ferries.jsonl", "--sweep", "k=0"], "--sweep"),
        (["ferries.jsonl", "--sweep", "k=1", "--k", "2"], "--sweep"),
        (["ferries.jsonl", "--k", "0"], "--k takes numbers from 1"),
        (["ferries.jsonl", "--k", "a"], "--k takes numbers from 1"),
        (["ferries.jsonl", "--strategies", "rag,magic"], "'magic'"),
        (["ferries.jsonl", "--base-url", "http://127.0.0.1:9"], "needs --model"),
        (["ferries.jsonl", "--model", "openai:gpt-4o-mini"], "OPENAI_API_KEY"),
        (["empty.jsonl"], "holds no question"),
        (["bare.jsonl"], "has no document"),
        (["ferries.jsonl", "--judge"], "the extractive reader cannot judge"),
        (["ferries.jsonl", "--judge="], "the extractive reader cannot judge"),
        (["--judge", "ferries.jsonl"], "the extractive reader cannot judge"),
        (["ferries.jsonl", "--judge", "nobody:x"], "no provider 'nobody'"),
        (["ferries.jsonl", "--judge-priced-as", "openai:gpt-4o"], "--judge-priced-as needs --judge"),
        (["ferries.jsonl", "--grades", "grades.jsonl"], "--grades needs --judge"),
        (["ferries.jsonl", *HOUSE_JUDGE, "--grades", "none.jsonl"], "none.jsonl cannot be read"),
    ],
)
def test_what_cannot_work_is_one_line_and_exit_code_2(
    run: Run, questions: Path, args: Sequence[str], says: str
) -> None:
    Path("empty.jsonl").write_text("")
    Path("other").mkdir()
    Path("other/ferries.jsonl").write_text('{"question": "When?", "answers": ["now"], "document": "It is now."}\n')
    Path("bare.jsonl").write_text('{"question": "Who?", "answers": ["I"]}\n')
    result = run(*args)
    assert result.code == 2
    assert says in result.err
    assert result.err.strip().splitlines()[-1].startswith("selfroute: ")
