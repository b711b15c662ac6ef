"""A client of `selfroute mcp`, as an editor or a chat program is one.

    pip install "selfroute-workbench[mcp]" langchain-openai
    python examples/mcp_client.py [--model openai:gpt-5-mini]

Starts the server over the document that comes with selfroute, asks it a question, and prints the answer with the
sentence that says it. Without `--model` the built-in extractive reader answers, which is not an LLM.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from importlib.resources import as_file, files

from mcp import Client, StdioServerParameters

from selfroute.errors import SelfRouteError
from selfroute_workbench.command.models import load_model

QUESTION = "What was the greatest gust of the storm of 9 February 2025?"


async def ask(arguments: list[str]) -> None:
    """Start the server, and ask it."""
    command = ["-m", "selfroute_workbench.cli", "mcp", *arguments]
    server = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
    async with Client(server) as client:
        print("tools:", ", ".join(tool.name for tool in (await client.list_tools()).tools))
        told = (await client.call_tool("ask", {"question": QUESTION})).structured_content or {}
        print(f"{told['route']}: {told['answer']}")
        for one in told["citations"]:
            print(f"line {one['line']}: {one['text']}")


def main() -> None:
    """Ask one question."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="provider:name")
    options = parser.parse_args()
    if options.model:
        try:
            load_model(options.model, base_url=None)
        except SelfRouteError as error:
            parser.error(f"--model {options.model}: {error}")
    with as_file(files("selfroute_workbench.demo") / "documents" / "harbour-minutes.md") as path:
        asyncio.run(ask([str(path), *(["--model", options.model] if options.model else [])]))


if __name__ == "__main__":
    main()
