"""The extra `mcp` of the workbench: files are served over pipes to the client of the official SDK."""

import asyncio
import shutil
import sysconfig

from mcp import Client, StdioServerParameters

command = shutil.which("selfroute", path=sysconfig.get_path("scripts"))
assert command, "the wheel brought no command"


async def main() -> None:
    async with Client(StdioServerParameters(command=command, args=["mcp", __file__])) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["ask", "search", "find", "open"]
        found = await client.call_tool("find", {"document": "mcp.py", "words": "official SDK"})
        assert "official SDK" in found.content[0].text, found


asyncio.run(main())
