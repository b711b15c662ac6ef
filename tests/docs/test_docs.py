"""The documentation says what works: its code is run, its commands are parsed, its links lead somewhere."""

import ast
import asyncio
import json
import re
import shlex
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import aclosing, closing, redirect_stdout
from io import StringIO
from itertools import cycle
from pathlib import Path
from pkgutil import resolve_name
from textwrap import dedent
from typing import Any, NamedTuple

import llama_index.core
import nbformat
import pytest
import typer.main
import yaml
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import VectorStore
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.schema import BaseNode, NodeRelationship, TextNode
from openai import OpenAI

import langchain_selfroute
import llamaindex_selfroute
import selfroute_workbench.evaluation
from llamaindex_parts import recorded
from loopback import LoopbackServer, Reply, Request
from replies import languages_put_back
from scenarios import DOCUMENT_TEXTS, PASSAGE_TEXTS, QUESTION, SCENARIOS, WHOLE, Scenario
from selfroute.calls.settings import Settings
from selfroute.effects import Decided
from selfroute.languages.tokens import count_tokens
from selfroute_workbench.cli import app
from selfroute_workbench.demo.corpus import question_of
from selfroute_workbench.demo.vectors import demo_store
from selfroute_workbench.demo.with_langchain import RecordedModel
from selfroute_workbench.evaluation import load_questions
from steering import LEFT_OUT, LONG_TEXTS, STEERED, Steered

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
TEXTS = [*PAGES, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "examples").glob("*.md"))]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SOURCES = (
    "selfroute",
    "workbench",
    "langchain_selfroute",
    "llamaindex_selfroute",
    "tests",
    "benchmarks",
    "examples",
    "docs",
)
FENCE = re.compile(r"^( *)```(\S*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    page: Path
    language: str
    text: str
    line: int


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def text_of(path: Path) -> str:
    """A page as Markdown; of a notebook the cells that are."""
    if path.suffix == ".ipynb":
        cells = nbformat.read(path, as_version=4).cells
        return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return path.read_text("utf-8")


def blocks_of(page: Path) -> list[Block]:
    text = text_of(page)
    return [Block(page, m[2], dedent(m[3]), text.count("\n", 0, m.start(3))) for m in FENCE.finditer(text)]


BLOCKS = [block for page in TEXTS for block in blocks_of(page)]
COMMANDS = [block for block in BLOCKS if block.language in {"bash", "console"}]
RECIPES = [block for block in BLOCKS if block.language == "py" and "def fetch" in block.text]
RUN = [page for page in PAGES if any(block.language == "python" for block in blocks_of(page))]
TARGETS = set(re.findall(r"^([a-z-]+):", text_of(ROOT / "Makefile"), re.MULTILINE))


def commands_in(command: Any) -> list[Any]:
    """The commands of a group, and those of the groups in it."""
    parts = getattr(command, "commands", {}).values()
    return [command, *(each for part in parts for each in commands_in(part))]


EXTRAS = text_of(ROOT / "pyproject.toml").split("[project.optional-dependencies]")[1].split("\n[")[0]
GROUPS = text_of(ROOT / "pyproject.toml").split("[dependency-groups]")[1].split("\n[tool")[0]
PARAMETERS = [parameter for command in commands_in(typer.main.get_command(app)) for parameter in command.params]
OPTIONS = {option for parameter in PARAMETERS for option in (*parameter.opts, *parameter.secondary_opts)}
SCRIPTS = [path for folder in ("benchmarks", "examples") for path in (ROOT / folder).glob("*.py")]
SCRIPTS.append(ROOT / "benchmarks" / "paper" / "__main__.py")
OPTIONS.update(["--group", "--index-url", "--cache-ram", "--max-model-len"])  # of pip, llama.cpp and vLLM
OPTIONS.update(*(re.findall(r'"(--[a-z-]+)"', text_of(path)) for path in SCRIPTS))
IDENTIFIER = re.compile(r"^::: (\S+)$", re.MULTILINE)


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

# As a file: some twenty passages, of which those that hold all are never among the nearest five.
LONG = "\n\n".join(f"{chunk}{' The minutes were taken as read.' * 90}" for chunk in CHUNKS)
TIKTOKEN = str(Path(llama_index.core.__file__).parent / "_static" / "tiktoken_cache")


def answer(request: Request) -> str:
    return "Ms Okafor" if all(chunk.strip() in request.prompt for chunk in CHUNKS) else "unanswerable"


def stored(name: str) -> VectorStore:
    """A store with one document of two tenants."""
    from langchain_chroma import Chroma  # noqa: PLC0415 - it takes long

    minutes = "".join(CHUNKS)
    starts = [minutes.index(chunk) for chunk in CHUNKS]
    store = Chroma(re.sub(r"\W", "-", name), DeterministicFakeEmbedding(size=8))
    for tenant in ("north", "south"):
        metadata = [{"source": "minutes", "start_index": start, "tenant": tenant} for start in starts]
        store.add_texts(CHUNKS if tenant == "north" else ["Nobody came."] * len(CHUNKS), metadata)
    return store


def split_at_chunks(document: llama_index.core.Document) -> list[BaseNode]:
    """The same document as nodes."""
    of = {NodeRelationship.SOURCE: document.as_related_node_info()}
    starts = map(document.text.index, CHUNKS)
    return [
        TextNode(text=text, start_char_idx=at, end_char_idx=at + len(text), relationships=of)
        for at, text in zip(starts, CHUNKS, strict=True)
    ]


class Ran(NamedTuple):
    """A page whose Python blocks were run: the names that they left, what they printed, what the model was asked."""

    page: Path
    names: dict[str, Any]
    shown: str
    server: LoopbackServer


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Ran]:
    """Run a page as a reader would who has a store and an index of one document, block after block."""
    page: Path = request.param
    names: dict[str, Any] = {"__name__": "__main__"}
    if "vectorstore" in text_of(page):
        names["vectorstore"] = stored(named(page))
    document = llama_index.core.Document(text="".join(CHUNKS))
    names["index"] = VectorStoreIndex(split_at_chunks(document), embed_model=MockEmbedding(8))
    with LoopbackServer(answer) as server, pytest.MonkeyPatch.context() as patch:
        server.embed = lambda text: DeterministicFakeEmbedding(size=8).embed_query(str(text))  # or its tokens
        patch.chdir(tmp_path_factory.mktemp("page"))
        if named(page) == "README.md":
            Path("texts").mkdir()
            Path("texts/minutes.md").write_text(LONG, "utf-8")
        patch.setenv("TIKTOKEN_CACHE_DIR", TIKTOKEN)  # which OpenAI's embeddings would fill from elsewhere
        patch.setenv("OPENAI_API_KEY", "none")
        if page != DOCS / "checking.md":  # it asks no model, and shows prices, which depend on the address
            patch.setenv("OPENAI_BASE_URL", server.openai_url)  # the variable of the client and of LangChain
            patch.setenv("OPENAI_API_BASE", server.openai_url)  # that of LlamaIndex
        with languages_put_back(), recorded(), redirect_stdout(StringIO()) as shown:  # a page may add event handlers
            for block in blocks_of(page):
                if block.language == "python":
                    placed = "\n" * block.line + block.text  # so that a traceback shows the line of the page
                    exec(compile(placed, str(page), "exec", dont_inherit=True), names)  # noqa: S102
        yield Ran(page, names, shown.getvalue(), server)


REAL_WEIGHTS = DOCS / "files.md"  # which needs torch
LONG_RUN = [pytest.mark.matrix, pytest.mark.timeout(900)]  # two minutes on two processors with nothing else to do


def pages(*paths: Path) -> Any:
    rows = [pytest.param(page, marks=LONG_RUN if page == REAL_WEIGHTS else (), id=named(page)) for page in paths]
    return pytest.mark.parametrize("ran", rows, indirect=True)


@pages(*RUN)
async def test_blocks_of_python_run(ran: Ran) -> None:
    printed = [line.rstrip() for line in ran.shown.splitlines()]
    for block in blocks_of(ran.page):
        if block.language == "text":
            promised = block.text.splitlines()
            at = range(len(printed) - len(promised) + 1)
            assert any(printed[start : start + len(promised)] == promised for start in at), block.text
    for pattern in SHOWN.get(named(ran.page), ()):
        assert re.search(pattern, ran.shown), pattern
    match named(ran.page):
        case "README.md":
            assert ran.shown == "Ms Okafor long_context\n" * 2
        case "docs/composing.md":
            result = await ran.names["Ask"]().run(question="Who chaired?")
            assert (str(result), result.metadata["answerable"]) == ("Ms Okafor", True)
            before, thread = len(ran.server.book), {"configurable": {"thread_id": "2"}}
            assert await ran.names["approve_all"]("Who chaired?") == "Ms Okafor"
            for given in ({"input": "Who chaired?"}, ran.names["Command"](resume=True)):
                ran.names["asking"].invoke(given, thread)
            assert [answer(one.request) for one in ran.server.book[before:]] == ["unanswerable", "Ms Okafor"] * 2
        case "docs/evaluating.md":
            files = {path.name for path in Path("evaluation").iterdir()}  # noqa: ASYNC240
            assert {"report.html", "results.json", "looks.jsonl"} <= files


# What pages print and do not show.
SHOWN = {
    "docs/adapter.md": [r"queries +1 +1 +2\n", r"\ntokens read: \d+% of the long context alone"],
    "docs/cost.md": [r"queries +0 +1 +1\n"],
    "docs/evaluating.md": [r"Cannot tell whether yours pays: 1 question on 1 document are too few"],
}


@pages(DOCS / "documents.md")
def test_documents_page_reads_files_below_a_folder(ran: Ran, tmp_path: Path) -> None:
    folder: Path = ran.names["FOLDER"]
    (folder / "below").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (folder.parent / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "below/a.txt").write_text("open")

    def read(name: str) -> list[str]:
        found = ran.names["read_files"]({"retrieved": [ran.names["Document"]("x", metadata={"source": name})]})
        return [document.page_content for document in found]

    assert read("below/a.txt") == read("below/../below/a.txt") == ["open"]
    for name in ("../secret", str(tmp_path / "secret"), "below/../../secret", "link"):
        with pytest.raises(PermissionError, match="not below"):
            read(name)


def test_files_that_contributors_are_told_of() -> None:
    paths = [path for top in SOURCES for path in (ROOT / top).rglob("*")]
    known = {path.relative_to(ROOT).as_posix() for path in [*paths, *ROOT.iterdir()]}
    named = set(re.findall(r"`([\w/.]+(?:\.py|/))`", text_of(ROOT / "CONTRIBUTING.md"))) - {"site/"}
    assert {name for name in named if not any(f"/{path}".endswith(f"/{name.rstrip('/')}") for path in known)} == set()


def test_readme_begins_with_demo_and_tests() -> None:
    readme = ROOT / "README.md"
    first = next(block for block in blocks_of(readme) if block.language == "console")
    assert [shlex.split(line, comments=True) for line in first.text.splitlines()] == [
        ["make", "demo"],
        ["make", "test"],
    ]
    lines = text_of(readme).splitlines()
    assert lines.index('result = chain.invoke("Who chaired the meeting in April?")') < 65
    assert lines.index('response = engine.query("Who chaired the meeting in April?")') < 80


def answer_of(adapter: Any, question: str) -> Any:
    """Ask the third adapter."""
    *_, answer = adapter.stream(question)
    return answer


def adapters_of(scenario: Scenario, names: dict[str, Any]) -> Iterator[tuple[Any, bool]]:
    """The third adapter as a scenario wants it: over a list and over a store, and whether it is awaited."""
    steered = isinstance(scenario, Steered)
    looks = cycle(scenario.looks if steered else ())

    def ask(prompt: str) -> Generator[str, None, None]:
        pieces = next(looks) if LEFT_OUT in prompt else scenario.final if WHOLE in prompt else scenario.draft
        assert pieces is not None
        for piece in pieces:
            yield piece or ""

    async def aask(prompt: str) -> AsyncGenerator[str, None]:
        with closing(ask(prompt)) as pieces:
            for piece in pieces:
                yield piece

    found = scenario.found if steered else [] if scenario.draft is None else PASSAGE_TEXTS
    passages = [names["Text"]("minutes", text) for text in found]
    texts = [names["Text"]("minutes", text) for text in (LONG_TEXTS if steered else DOCUMENT_TEXTS[:1])]
    whole = texts[0].text
    rows = [(str(at), "minutes", at, "north", whole[at : at + 20]) for at in range(0, len(whole), 15)]
    stored = names["StoredTexts"](rows).limited_to("north")
    options: dict[str, Any] = {"answerability": "text", "sections": None, **(scenario.options if steered else {})}
    settings = Settings(refusal=scenario.refusal, **options)
    # A list is read whatever was retrieved; out of a store, nothing is where nothing was.
    for documents in (texts, stored) if passages and not steered else (texts,):
        for reply, awaited in ((ask, False), (aask, True)):
            yield names["SelfRoute"](lambda _: passages, reply, documents, settings), awaited


async def collected(items: AsyncGenerator[Any, None]) -> list[Any]:
    async with aclosing(items):
        return [item async for item in items]


@pages(DOCS / "adapter.md")
def test_third_adapter_scenarios(ran: Ran) -> None:
    names = ran.names
    for scenario in [*SCENARIOS, *STEERED]:
        if scenario.ends:  # its client says nothing of how a reply ended
            continue
        for adapter, awaited in adapters_of(scenario, names):
            if awaited:
                items = asyncio.run(collected(names["astream"](adapter, QUESTION)))
            else:
                items = list(adapter.stream(QUESTION))
            *shown, answer = items
            decided = [item for item in shown if isinstance(item, Decided)]
            pieces = shown[len(decided) :]
            assert all(isinstance(piece, str) and piece for piece in pieces), scenario
            assert (decided[-1].route, decided[-1].decision) == (answer.route, answer.decision), scenario
            assert "".join(pieces) == answer.text == scenario.answer, scenario
            assert (answer.route, answer.answerable) == (scenario.route, scenario.answerable), scenario
            assert answer.decision.signal == scenario.signal, scenario
            assert adapter.ledger.to_dict()["routes"][scenario.route] == 1, scenario


@pages(DOCS / "adapter.md")
def test_third_adapter_usage(ran: Ran) -> None:
    names, prompts = ran.names, list[str]()

    def ask(prompt: str) -> Generator[str, None, None]:
        prompts.append(prompt)
        yield from names["ask"](prompt)

    minutes = [names["Text"]("minutes", names["MINUTES"])]
    adapter = names["SelfRoute"](lambda _: names["PASSAGES"], ask, minutes)
    answer_of(adapter, "When does the ferry leave?")
    answer_of(adapter, "Who took the chair?")
    first, declined, second = map(count_tokens, prompts)
    figures = adapter.ledger.to_dict()
    assert figures["tokens"]["rag"]["input_tokens"] == first + declined
    assert figures["tokens"]["long_context"]["input_tokens"] == second
    # For the first question it is an estimate: its prompt, with the whole document in place of the passages.
    alone = figures["savings"]["long_context_only"]
    assert alone == pytest.approx(2 * second, rel=0.03)
    assert f"({first + declined + second:,} of {alone:,}; queries: 2)" in str(adapter.ledger)


@pages(DOCS / "adapter.md")
def test_third_adapter_hangs_up(ran: Ran) -> None:
    names, server = ran.names, ran.server
    client = OpenAI(base_url=server.openai_url, api_key="none")

    def ask(prompt: str) -> Generator[str, None, None]:
        messages: Any = [{"role": "user", "content": prompt}]
        with client.chat.completions.create(model="any", messages=messages, stream=True) as chunks:
            for chunk in chunks:
                yield chunk.choices[0].delta.content or ""

    talk = ["Unanswerable.", " The", " passages", *(" tell" for _ in range(20))]
    server.answer = lambda request: Reply(pieces=talk, hold_after=3)
    minutes = [names["Text"]("minutes", names["MINUTES"])]
    adapter = names["SelfRoute"](lambda _: names["PASSAGES"], ask, minutes)
    with client, closing(adapter.stream("Who took the chair?")) as items:
        next(items)
        server.settle()
        assert (server.book[-1].left, server.book[-1].sent) == (True, 3)
        server.answer = lambda request: Reply(pieces=["Yes,", " Ms", " Okafor", " did."], hold_after=2)
        assert next(items).startswith("Yes")
        items.close()
        server.settle()
        assert server.book[-1].left
    assert adapter.ledger.to_dict()["left"] == 1
    assert adapter.ledger.to_dict()["tokens"]["long_context"]["output_tokens"] > 0  # it was paid for all the same


@pages(DOCS / "adapter.md")
def test_third_adapter_reads_less(ran: Ran) -> None:
    names = ran.names

    def ask(prompt: str) -> Generator[str, None, None]:
        if len(prompt) > 2_000:
            msg = "This model's maximum context length is 500 tokens"
            raise ValueError(msg)
        yield "Ms Okafor did." if prompt.startswith("Read the following") else "unanswerable"

    minutes = [names["Text"]("minutes", names["MINUTES"])]
    for documents in (minutes, names["StoredTexts"](names["ROWS"]).limited_to("north")):
        adapter = names["SelfRoute"](lambda _: names["PASSAGES"], ask, documents)
        answer = answer_of(adapter, "Who took the chair?")
        assert (answer.route, answer.text) == ("long_context", "Ms Okafor did.")
        assert 0 < len(answer.context[0].text) < len(names["MINUTES"])
        assert answer.context[0].trimmed
        assert adapter.ledger.to_dict()["failed"] == 0


@pages(DOCS / "adapter.md")
def test_third_adapter_without_documents(ran: Ran) -> None:
    names, asked = ran.names, list[str]()

    def ask(prompt: str) -> Generator[str, None, None]:
        asked.append(prompt)
        yield "unanswerable"

    nothing = names["StoredTexts"]([]).limited_to("north")
    for documents, route in (([], "long_context"), (nothing, "rag")):
        answer = answer_of(names["SelfRoute"](lambda _: [], ask, documents), "Who took {the} chair?")
        assert (answer.text, answer.route, answer.answerable, asked) == ("unanswerable", route, False, [])
    with pytest.raises(LookupError, match="'minutes'"):
        answer_of(names["SelfRoute"](lambda _: names["PASSAGES"], ask, nothing), "Who took {the} chair?")


@pages(DOCS / "adapter.md")
def test_third_adapter_reads_what_its_team_may(ran: Ran) -> None:
    names = ran.names
    store = names["StoredTexts"]([*names["ROWS"]])
    documents = {team: store.limited_to(team) for team in ("north", "south")}
    for _ in range(2):  # the second time out of the cache
        assert [document.text for document in documents["north"](names["PASSAGES"])] == [names["MINUTES"]]
        (south,) = documents["south"]([names["Text"]("minutes", "Mr Lin")])
        assert south.text == "Mr Lin took the chair."
    store.rows.append(("y", "minutes", 23, "south", "Tea was served."))
    (south,) = documents["south"]([names["Text"]("minutes", "Mr Lin")])
    assert south.text == "Mr Lin took the chair.\nTea was served."


def test_blocks_are_run_or_checked() -> None:
    fences = sum(len(re.findall(r"^\s*(?:```|~~~)", text_of(page), re.MULTILINE)) for page in TEXTS)
    assert fences == 2 * len(BLOCKS)
    checked = {"bash", "console", "json", "py", "text"}
    others = [block for block in BLOCKS if block.language not in checked]
    assert not [(named(block.page), block.language) for block in others if block.language != "python"]
    assert {block.page for block in others} == set(RUN)


@pytest.mark.parametrize("block", RECIPES, ids=lambda block: f"{named(block.page)}-{block.line}")
def test_recipes_are_a_fetch(block: Block) -> None:
    found = {one.name: one for one in ast.walk(ast.parse(block.text)) if isinstance(one, ast.FunctionDef)}
    assert [argument.arg for argument in found["fetch"].args.args] == ["source_key", "source", "filter"]
    assert "**None of them was run by us**" in text_of(block.page)


@pytest.mark.parametrize("block", COMMANDS, ids=lambda block: named(block.page))
def test_commands_are_there(block: Block) -> None:
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            check(words)


def check(words: list[str]) -> None:
    """Look at one command without running it; one of a kind that nobody can look at is no command for a page."""
    match words:
        case ["pip", "install", *wanted]:
            assert wanted
        case ["make", *targets]:
            assert targets
        case ["python", "-m", module, *_]:
            assert (ROOT / module.replace(".", "/") / "__main__.py").is_file(), module
        case ["python", path, *_] | ["bash", path, *_]:
            assert (ROOT / path).is_file(), path
        case ["selfroute", *names]:
            command = typer.main.get_command(app)
            while hasattr(command, "commands"):
                name, *names = names
                command = command.commands[name]
            command.make_context(name, names)
        case ["export", *_] | ["ollama" | "llama-server" | "OLLAMA_CONTEXT_LENGTH=32768", *_]:
            pass
        case _:
            pytest.fail(f"what is this? {shlex.join(words)}")


@pytest.mark.parametrize("path", [*TEXTS, *NOTEBOOKS], ids=named)
def test_names_of_extras_targets_and_options_are_there(path: Path) -> None:
    text = text_of(path)
    extras = {name for names in re.findall(r"\bselfroute\[([\w,-]+)\]", text) for name in names.split(",")}
    assert extras <= set(re.findall(r"^([\w-]+) = \[", EXTRAS, re.MULTILINE))
    assert set(re.findall(r"--group ([\w-]+)", text)) <= set(re.findall(r"^([\w-]+) = \[", GROUPS, re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z-]+)\b", code_in(text))) <= TARGETS
    scripts = re.findall(r"\bpython ([\w/]+\.py)", text)
    assert not [script for script in scripts if not (ROOT / script).is_file()]
    options = re.findall(r"(?<![\w-])--[a-z][a-z-]+", code_in(text))
    assert not [option for option in options if option not in OPTIONS]


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "json"], ids=lambda b: named(b.page))
def test_blocks_of_json(block: Block, tmp_path: Path) -> None:
    rows = [json.loads(text) for text in ([block.text] if block.text.startswith("{\n") else block.text.splitlines())]
    if named(block.page) == "docs/evaluating.md":
        for row in rows:
            if "document_file" in row:
                (tmp_path / row["document_file"]).write_text("The ferry leaves at seven.")
        (tmp_path / "some.jsonl").write_text(block.text)
        assert len(load_questions(tmp_path / "some.jsonl")) == len(rows)


@pytest.mark.parametrize("path", [*TEXTS, *NOTEBOOKS], ids=named)
def test_links(path: Path) -> None:
    for link in re.findall(r"(?:\]\(|\bsrc(?:set)?=\")([^)\"\s]+)[)\"]", prose_of(text_of(path))):
        if re.match(r"https?:", link):
            continue
        file, _, anchor = link.removesuffix("#only-light").removesuffix("#only-dark").partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.exists(), link
        assert target.is_relative_to(DOCS) or not path.is_relative_to(DOCS), f"{link}: not among the built pages"
        assert not anchor or anchor in anchors_of(target), link


def prose_of(text: str) -> str:
    return re.sub(r"`[^`\n]+`", "", FENCE.sub("", text))


def code_in(text: str) -> str:
    """All code, in blocks and between words."""
    return "\n".join([*(found[2] for found in FENCE.findall(text)), *re.findall(r"`([^`\n]+)`", FENCE.sub("", text))])


def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's headings that mkdocs and a repository's host make alike, and those of the reference."""
    text = FENCE.sub("", text_of(page))
    titles = [
        re.sub(r"[`*]|\]\([^)]*\)|\[", "", title).lower() for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    ]
    words = [re.sub(r"[^\w\s-]", "", title).strip() for title in titles]
    alike = {re.sub(r"[-\s]+", "-", title) for title in words} & {title.replace(" ", "-") for title in words}
    return alike | set(IDENTIFIER.findall(text))


def test_table_of_extras() -> None:
    listed = re.findall(r"^\| `([\w-]+)` \|.*\| \d+ \| \d+ \|$", text_of(DOCS / "index.md"), re.MULTILINE)
    assert listed == re.findall(r"^([\w-]+) = \[", EXTRAS, re.MULTILINE)


def test_navigation() -> None:
    def leaves(nav: Any) -> Iterator[str]:
        for value in nav.values() if isinstance(nav, dict) else nav:
            yield from [value] if isinstance(value, str) else leaves(value)

    nav = yaml.safe_load(text_of(ROOT / "mkdocs.yml").replace("!ENV ", ""))["nav"]
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    generated = [*(ROOT / "notebooks").glob("*.ipynb"), *(ROOT / "examples").glob("*.py")]
    pages |= {"examples/index.md", *(f"{path.parent.name}/{path.stem}.md" for path in generated)}
    assert sorted(leaves(nav)) == sorted(pages)


def test_reference() -> None:
    told = {name for page in (DOCS / "reference").glob("*.md") for name in IDENTIFIER.findall(text_of(page))}
    for package in (langchain_selfroute, llamaindex_selfroute, selfroute_workbench.evaluation):
        assert {f"{package.__name__}.{name}" for name in package.__all__} <= told
    for name in told:
        assert resolve_name(name)


def test_home_page_shows_the_demo() -> None:
    demo = langchain_selfroute.SelfRouteChain.from_vectorstore(demo_store(), RecordedModel(), citations=True)
    result = demo.invoke(question_of("minutes-03"))
    page = text_of(DOCS / "index.md")
    block = re.search(r"```json\n(.*?)```", page, re.DOTALL)
    assert block
    shown = json.loads(block[1])
    shown["usage"] = {**result["usage"], **shown["usage"]}
    shown["citations"] += result["citations"][1:]
    assert {name: result[name] for name in shown} == shown
