"""What clients in Python that need an environment of their own see of `selfroute mcp`, as JSON.

python client.py KIND ADDRESS-OR-COMMAND...   KIND is mcp (its version 1), langchain or llama_index.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack
from typing import Any

HEADERS = {"Authorization": f"Bearer {os.environ.get('SELFROUTE_MCP_TOKEN')}"}
ASKED = {"question": "Who is the captain? Be slow."}


async def mcp(address: str, args: list[str]) -> dict[str, Any]:
    from mcp import ClientSession, StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamablehttp_client

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append({"progress": done, "message": message})

    told: list[dict[str, Any]] = []
    server = StdioServerParameters(command=address, args=args, env={**os.environ})
    http = address.startswith("http")
    async with AsyncExitStack() as stack:
        opened = streamablehttp_client(address, headers=HEADERS) if http else stdio_client(server)
        read, write, *_ = await stack.enter_async_context(opened)
        session = await stack.enter_async_context(ClientSession(read, write))
        begun = await session.initialize()

        async def call(tool: str, **given: str) -> Any:
            return (await session.call_tool(tool, given)).structuredContent

        return {
            "server": begun.serverInfo.name,
            "instructions": begun.instructions,
            "tools": [tool.model_dump(mode="json") for tool in (await session.list_tools()).tools],
            "resources": [one.model_dump(mode="json") for one in (await session.list_resources()).resources],
            "searched": await call("search", query="Who is the captain?"),
            "found": await call("find", document="crew.md", words="captain"),
            "opened": await call("open", document="crew.md"),
            "missing": await call("open", document="moon.md"),
            "slow": (await session.call_tool("ask", ASKED, progress_callback=progress)).structuredContent,
            "progress": told,
            "failed": (await session.call_tool("ask", {"question": "Who fails?"})).model_dump(mode="json"),
        }


async def langchain(address: str, args: list[str]) -> dict[str, Any]:
    from langchain_mcp_adapters.client import MultiServerMCPClient

    def connection(*more: str) -> Any:
        if address.startswith("http"):
            return {"transport": "http", "url": address, "headers": HEADERS}
        return {"transport": "stdio", "command": address, "args": [*args, *more], "env": {**os.environ}}

    servers = {"ours": connection(), "theirs": connection("--about", "The letters of another board")}
    tools = await MultiServerMCPClient(servers, tool_name_prefix=address.startswith("http")).get_tools()
    message = await tools[0].ainvoke({"type": "tool_call", "id": "1", "name": "ask", "args": ASKED})
    return {
        "names": [tool.name for tool in tools],
        "described": [tool.description for tool in tools],
        "slow": message.artifact["structured_content"],
    }


async def llama_index(address: str, args: list[str]) -> dict[str, Any]:
    from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

    client = BasicMCPClient(address, args=args, env={**os.environ}, headers=HEADERS)
    tools = await McpToolSpec(client=client).to_tool_list_async()
    output = await tools[0].acall(**ASKED)
    return {
        "names": [tool.metadata.name for tool in tools],
        "described": [tool.metadata.description for tool in tools],
        "slow": output.raw_output.structured_content,
    }


if __name__ == "__main__":
    kind, where, *rest = sys.argv[1:]
    print(json.dumps(asyncio.run(globals()[kind](where, rest))))
