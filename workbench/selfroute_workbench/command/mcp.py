"""Performs `selfroute mcp`: the user's files for clients that speak the Model Context Protocol."""

from __future__ import annotations

import hmac
import os
import secrets
import sys
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import quote

from langchain_core.tools import BaseTool
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resources import TextResource
from pydantic import Field

from selfroute import __version__
from selfroute.agents.tools import TOOLS
from selfroute.error_text import one_line
from selfroute.errors import ConfigurationError
from selfroute.hangup import cancelled_once
from selfroute.usage.ledger_text import STEP_NAMES
from selfroute_workbench.command.answers import NOT_THERE, as_json
from selfroute_workbench.command.asking import open_files
from selfroute_workbench.command.library import Library
from selfroute_workbench.command.options import Options
from selfroute_workbench.command.sessions import Output, Session
from selfroute_workbench.command.terminal import open_console

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
_MISSING = {"missing": True, "message": "No such document was found: search for what it says first."}
_Question = Annotated[str, Field(description="The question, understandable by itself")]
_Query = Annotated[str, Field(description="What to look for")]
_Document = Annotated[str, Field(description="The document's name, as a search gives it")]
_Words = Annotated[str, Field(description="Words to look for, or a question")]
_Start = Annotated[int, Field(description="The offset of the first character", ge=0)]
Json = dict[str, Any]
Asgi = Callable[..., Awaitable[None]]


def serve(options: Options) -> None:
    """Serve the user's own files until the client goes; over HTTP, to those who send the token.

    Where no token is set, one is made and printed on the standard error: a port of this machine is open to all its
    users, also a port of files that only their owner may read.
    """
    token, host, port = os.environ.get(TOKEN, "").strip(), options.host, options.port
    if options.http and host not in _LOOPBACK and not token:
        msg = f"--host {host} is open to others: set a token in {TOKEN}, which clients send as a bearer token"
        raise ConfigurationError(msg)
    session, library, _ = open_files(replace(options, as_json=True))
    session.chain.warm_up()
    server = server_of(session, library)
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
    console.print(f"Serving {len(library.texts)} documents at http://{host}:{port}/mcp")
    uvicorn.run(app, host=host, port=port, log_level="warning")


def server_of(session: Session, library: Library) -> MCPServer[Any]:
    """Return the server of a session: the tools `ask`, `search`, `find` and `open`, and the documents as resources."""
    server: MCPServer[Any] = MCPServer("selfroute", instructions=_INSTRUCTIONS, version=__version__, log_level="ERROR")
    tools = {tool.name: tool for tool in session.chain.tools()}

    _add_ask(server, session)

    @server.tool(description=TOOLS["search"].about)
    async def search(query: _Query) -> Json:
        return await _use(tools["search"], query=query)

    @server.tool(description=TOOLS["find"].about)
    async def find(document: _Document, words: _Words) -> Json:
        return await _use(tools["find"], document=document, words=words)

    @server.tool(description=TOOLS["open"].about)
    async def open(document: _Document, start: _Start = 0) -> Json:  # noqa: A001 - the tool's name
        return await _use(tools["open"], document=document, start=start)

    for number, text in enumerate(library.texts.values(), 1):
        uri = f"selfroute://documents/{number}/{quote(text.source, safe='')}"
        server.add_resource(TextResource(uri=uri, name=text.source, text=text.text))
    return server


def _add_ask(server: MCPServer[Any], session: Session) -> None:
    """Add the tool that answers."""

    @server.tool(description=_ASK)
    async def ask(question: _Question, context: Context) -> Json:
        async def begun(route: str) -> None:
            await context.report_progress(1, None, f"answering from {STEP_NAMES[route]}")

        await context.report_progress(0, None, "searching")
        try:
            # A client that leaves cancels this: no step is begun then, and a model that replies is stopped.
            output = await cancelled_once(session.aask(question, begun))
        except Exception as error:  # the providers' clients have no error in common
            raise ToolError(one_line(error)) from error
        return _brief(output)


def _brief(output: Output) -> Json:
    """Return the parts of an answer that a client gets."""
    told = as_json(output)
    usage = output.usage
    return {
        "answer": output.answer if output.answerable else NOT_THERE,
        "answerable": output.answerable,
        "route": output.route,
        "citations": [
            {key: one[key] for key in ("source", "page", "line", "text") if one[key] is not None}
            for one in told["citations"]
        ],
        "tokens": usage["total_tokens"],
    }


async def _use(tool: BaseTool, **given: Any) -> Json:
    """Use a tool, and return its artifact; with a message where it found nothing."""
    message = await tool.ainvoke({"type": "tool_call", "id": "1", "name": tool.name, "args": given})
    found: Json = message.artifact
    if found.get("missing"):
        return {**found, **_MISSING}
    return {**found, "message": message.content} if found.keys() & {"refused", "failed"} else found


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
