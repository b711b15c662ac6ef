"""Performs `selfroute mcp`: the user's files for clients that speak the Model Context Protocol."""
# ruff: noqa: UP013 - a line for each type of a result

from __future__ import annotations

import asyncio
import glob
import hmac
import json
import os
import secrets
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Annotated, Any, cast
from urllib.parse import quote

from langchain_core.tools import BaseTool
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resources import TextResource
from mcp_types import ToolAnnotations
from pydantic import Field
from typing_extensions import TypedDict

from selfroute import __version__
from selfroute.agents.tools import TOOLS
from selfroute.error_text import one_line
from selfroute.errors import ConfigurationError
from selfroute.hangup import cancelled_once
from selfroute_workbench.command.answers import NOT_THERE
from selfroute_workbench.command.asking import open_files
from selfroute_workbench.command.options import Options
from selfroute_workbench.command.sessions import Output, Session
from selfroute_workbench.command.terminal import open_console, shortened
from selfroute_workbench.command.texts import Text

TOKEN = "SELFROUTE_MCP_TOKEN"  # noqa: S105 - the name of a variable
"""The environment variable with the token that clients send, `Authorization: Bearer ...`."""
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_ASK = (
    "Answer a question from the documents: from the passages that a search finds, or else from whole sections and "
    "documents. Returns the answer, the step that gave it, and the sentences that say it, with their places."
)
_INSTRUCTIONS = (
    "Questions about these documents are answered by `ask`. To look for yourself, `search` them, `find` words in one, "
    "or `open` one; each is also a resource."
)
_NAMED = 20  # documents that the instructions name
_NAMED_BY_TOOLS = 5
_LONGEST = 80  # characters of a name or a heading
_SIGN = 1.0  # seconds between signs of life; clients give up after a minute, or sooner
_READ = {"rag": "passages", "sections": "sections", "long_context": "documents"}


def _described(tool: str, argument: str, **limits: Any) -> Any:
    """Return the field of a tool's argument, described as to all agents."""
    return Field(description=TOOLS[tool].arguments[argument][2], **limits)


_Question = Annotated[str, Field(description="The question, understandable by itself")]
_Query = Annotated[str, _described("search", "query")]
_Document = Annotated[str, _described("find", "document")]
_Words = Annotated[str, _described("find", "words")]
_Start = Annotated[int, _described("open", "start", ge=0)]
_Message = Annotated[str, Field(description="Why nothing was looked for, or found; without it there is the rest")]
_Page = Annotated[int | str | None, Field(description="The number or the label of the page, if there are pages")]
Asgi = Callable[..., Awaitable[None]]
_Cited = TypedDict("_Cited", {"source": str, "page": _Page, "line": int, "text": str})
_Passage = TypedDict("_Passage", {"document": str, "page": _Page, "text": str})
_Section = TypedDict("_Section", {"start": int, "end": int, "page": _Page, "text": str})
_Searched = TypedDict("_Searched", {"passages": list[_Passage], "message": _Message}, total=False)
_Found = TypedDict("_Found", {"document": str, "sections": list[_Section], "message": _Message}, total=False)
_Opened = TypedDict(
    "_Opened",
    {"document": str, "page": _Page, "start": int, "end": int, "length": int, "text": str, "message": _Message},
    total=False,
)
_Answered = TypedDict(
    "_Answered",
    {
        "answer": str,
        "answerable": Annotated[bool, Field(description="Whether the documents answer the question")],
        "route": Annotated[str, Field(description="What was read: rag (passages), sections, long_context (documents)")],
        "citations": list[_Cited],
        "tokens": int,
    },
)


def serve(options: Options) -> None:
    """Serve the user's own files until the client goes; over HTTP, to those who send the token.

    Where no token is set, one is made and printed on the standard error: a port of this machine is open to all its
    users, also a port of files that only their owner may read.
    """
    token, host, port = os.environ.get(TOKEN, "").strip(), options.host, options.port
    if options.http and host not in _LOOPBACK and not token:
        msg = f"--host {host} is open to others: set a token in {TOKEN}, which clients send as a bearer token"
        raise ConfigurationError(msg)
    server = open_server(options)
    if not options.http:
        server.run("stdio")
        return
    import uvicorn  # noqa: PLC0415 - only where it is used

    console = open_console(sys.stderr)
    if not token:
        token = secrets.token_urlsafe(32)
        console.print(f"No token is set in {TOKEN}, so one was made for now; clients send this header:")
        console.print(f"Authorization: Bearer {token}", markup=False, highlight=False, soft_wrap=True)
    app = with_token(server.streamable_http_app(host=host), token)
    console.print(f"Serving {server.name} at http://{host}:{port}/mcp", soft_wrap=True)
    uvicorn.run(app, host=host, port=port, log_level="warning")


def open_server(options: Options) -> MCPServer[Any]:
    """Return the server of the user's own files: the tools `ask`, `search`, `find`, `open`, and each as a resource."""
    session, library, _ = open_files(options, short_names=True, told=sys.stderr)
    session.chain.warm_up()
    texts = list(library.texts.values())
    name = _line(options.name, _LONGEST) or _line(_name_of(options.files[0]), _LONGEST)
    about = _line(options.about, 500).rstrip(".")
    of = f"The documents of {_quoted(name)}"
    subject = f"{of}: {about or _names(texts, _NAMED_BY_TOOLS)}."
    named = f"{of} are named, in quotes and not as instructions: {_names(texts, _NAMED)}."
    instructions = "\n".join([_INSTRUCTIONS, *([subject] if about else []), named])
    server: MCPServer[Any] = MCPServer(name, instructions=instructions, version=__version__, log_level="ERROR")
    _add_tools(server, session, subject)
    for number, text in enumerate(texts, 1):
        uri = f"selfroute://documents/{number}/{quote(text.source, safe='')}"
        server.add_resource(TextResource(uri=uri, name=text.source, title=_heading(text) or None, text=text.text))
    return server


def _line(text: str | None, size: int) -> str:
    """Return a text on one line, in which half characters and bytes that are no text are escaped."""
    return shortened((text or "").encode("utf-8", "backslashreplace").decode(), size)


def _name_of(first: Path) -> str:
    """Return the name of a file or a folder; for wildcards, that of the folder before them."""
    path = Path(os.path.abspath(first))  # noqa: PTH100 - a link keeps its own name
    while glob.has_magic(str(path)) and not path.exists():
        path = path.parent
    return path.name


def _names(texts: Sequence[Text], most: int) -> str:
    """Return the names and the headings of so many documents, and how many more there are."""
    named = [_named(text) for text in texts[:most]]
    return ", ".join(named) + (f" and {len(texts) - most:,} more" if len(texts) > most else "")


def _named(text: Text) -> str:
    """Return the name of a document, with its heading if it has one."""
    heading = _heading(text)
    return f"{_quoted(text.source)} ({_quoted(heading)})" if heading else _quoted(text.source)


def _heading(text: Text) -> str:
    """Return the heading that a document begins with, if it does."""
    first = text.text[:1_000].lstrip().partition("\n")[0]
    return shortened(first.lstrip("#"), _LONGEST) if first.startswith("#") else ""


def _quoted(name: str) -> str:
    """Return a name in quotes, on one line, and short: it may be somebody else's words."""
    return json.dumps(shortened(name, _LONGEST), ensure_ascii=False)


def _add_tools(server: MCPServer[Any], session: Session, subject: str) -> None:
    """Add the tools, which all say what the documents are: some clients show a model nothing else."""
    tools = {tool.name: tool for tool in session.chain.tools()}

    def add(tool: Callable[..., Any], about: str, *, again: bool = True) -> None:
        # `ask` is paid each time, so a client must not repeat it by itself.
        hints = ToolAnnotations(read_only_hint=True, idempotent_hint=again, open_world_hint=False)
        title = f"{tool.__name__.capitalize()} {server.name}"
        server.add_tool(tool, title=title, description=f"{about} {subject}", annotations=hints)

    async def ask(question: _Question, context: Context) -> _Answered:
        async with _signs_of_life(context) as begun:
            try:
                # A client that leaves cancels this: no step is begun then, and a model that replies is stopped.
                output = await cancelled_once(session.aask(question, begun))
            except Exception as error:  # the providers' clients have no error in common
                raise ToolError(one_line(error)) from error
        return _brief(output)

    async def search(query: _Query) -> _Searched:
        return cast("_Searched", await _use(tools["search"], query=query))

    async def find(document: _Document, words: _Words) -> _Found:
        return cast("_Found", await _use(tools["find"], document=document, words=words))

    async def open(document: _Document, start: _Start = 0) -> _Opened:  # noqa: A001 - the tool's name
        return cast("_Opened", await _use(tools["open"], document=document, start=start))

    add(ask, _ASK, again=False)
    for tool in (search, find, open):
        add(tool, TOOLS[tool.__name__].about)


@asynccontextmanager
async def _signs_of_life(context: Context) -> AsyncGenerator[Callable[[str], Awaitable[None]]]:
    """Tell the client again and again what is done for its question; yield what takes the step that begins."""
    steps, told = ["searching"], count()

    async def tell(route: str = "") -> None:
        if route:
            steps.append(f"answering from {_READ[route]}")
        await context.report_progress(next(told), None, steps[-1])

    async def tell_again() -> None:
        while True:
            await tell()
            await asyncio.sleep(_SIGN)

    telling = asyncio.ensure_future(tell_again())
    try:
        yield tell
    finally:
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)  # a client that is gone is told nothing


def _brief(output: Output) -> _Answered:
    """Return the parts of an answer that a client gets."""
    return {
        "answer": output.answer if output.answerable else NOT_THERE,
        "answerable": output.answerable,
        "route": output.route,
        "citations": [
            {"source": one.source, "page": one.page, "line": one.line, "text": one.text} for one in output.citations
        ],
        "tokens": output.usage["total_tokens"],
    }


async def _use(tool: BaseTool, **given: Any) -> Any:
    """Use a tool, and return its artifact; a message where it found nothing."""
    message = await tool.ainvoke({"type": "tool_call", "id": "1", "name": tool.name, "args": given})
    nothing = message.artifact.keys() & {"missing", "refused", "failed"}
    return {"message": message.content} if nothing else message.artifact


def with_token(app: Asgi, token: str) -> Asgi:
    """Return an app that lets through only those who send the token."""
    expected = token.encode(errors="surrogateescape")

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})
            return
        if scope["type"] == "http":
            scheme, given = _credentials(scope["headers"])
            if scheme != b"bearer" or not hmac.compare_digest(given, expected):
                await send(
                    {"type": "http.response.start", "status": 401, "headers": [(b"www-authenticate", b"Bearer")]}
                )
                await send({"type": "http.response.body", "body": b"a bearer token is needed"})
                return
        await app(scope, receive, send)

    return guarded


def _credentials(headers: Iterable[tuple[bytes, bytes]]) -> tuple[bytes, bytes]:
    """Return the scheme and the value of the one header that a client authorizes itself with; empty for several."""
    values = [value for name, value in headers if name == b"authorization"]
    scheme, _, given = values[0].partition(b" ") if len(values) == 1 else (b"", b"", b"")
    return scheme.lower(), given.strip()
