"""The questions of all scenarios, asked in two steps by chains and engines that know nothing of one another.

Run as a program, this is the second process: it reads rows from standard input, and writes what became of them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import langchain_parts
import llamaindex_parts
from llamaindex_parts import AWAITED, Asked, pieces_of
from scenarios import QUESTION, SCENARIOS, Scenario
from steering import STEERED, Steered

Row = dict[str, Any]
Told = dict[str, Any]
ALL: dict[str, Scenario] = {scenario.name: scenario for scenario in [*SCENARIOS, *STEERED]}
CITED = {"citations": True, "usage": True}


def chain_of(scenario: Scenario, **fields: Any) -> Any:
    """A new chain for a scenario."""
    made = langchain_parts.steered_chain if isinstance(scenario, Steered) else langchain_parts.chain_for
    return made(scenario, **{**CITED, **fields})  # type: ignore[operator]


def engine_of(scenario: Scenario, mode: str = "query", **fields: Any) -> Any:
    """A new engine for a scenario."""
    made = llamaindex_parts.steered_engine if isinstance(scenario, Steered) else llamaindex_parts.engine_for
    return made(scenario, mode, **{**CITED, **fields})  # type: ignore[operator]


def told_by_chain(result: Any) -> Told:
    """The output of a chain as plain JSON."""
    documents = {
        key: [[one.page_content, one.metadata, one.id] for one in result[key]] for key in ("retrieved", "context")
    }
    return json.loads(json.dumps({**result, **documents}))  # type: ignore[no-any-return]


async def told_by_engine(response: Any, mode: str) -> Told:
    """The response of an engine as plain JSON."""
    asked = Asked(response, [piece async for piece in pieces_of(response, mode)])
    sources = [[one.node.get_content(), one.node.metadata, one.score] for one in response.source_nodes]
    told = json.loads(json.dumps({"answer": asked.text, **asked.metadata, "sources": sources}))
    for citation in told["citations"]:
        del citation["source"]  # an id that each process draws
    return told  # type: ignore[no-any-return]


async def whole(framework: str, scenario: Scenario, mode: str) -> tuple[Told, list[Any]]:
    """What becomes of a question that is asked at once; and the calls of the model."""
    if framework == "langchain":
        chain = chain_of(scenario)
        return told_by_chain(await langchain_parts.ask(chain, QUESTION, mode)), chain.llm.calls
    engine = engine_of(scenario, mode)
    response = await engine.aquery(QUESTION) if mode in AWAITED else engine.query(QUESTION)
    return await told_by_engine(response, mode), llamaindex_parts.model_of(engine).calls


async def first(framework: str, scenario: Scenario, *, awaited: bool = False) -> tuple[Row, list[Any]]:
    """The row of a question's first step; and the calls of the model."""
    if framework == "langchain":
        chain = chain_of(scenario)
        row = await chain.first_step.ainvoke(QUESTION) if awaited else chain.first_step.invoke(QUESTION)
        return row, chain.llm.calls
    engine = engine_of(scenario)
    row = await engine.afirst_step(QUESTION) if awaited else engine.first_step(QUESTION)
    return row, llamaindex_parts.model_of(engine).calls


async def second(framework: str, scenario: Scenario, row: Row, mode: str) -> tuple[Told, list[Any]]:
    """What becomes of the row of a question; and the calls of the model."""
    if framework == "langchain":
        chain = chain_of(scenario)
        return told_by_chain(await langchain_parts.ask(chain.second_step, row, mode)), chain.llm.calls
    engine = engine_of(scenario, mode)
    step: Callable[[Row], Any] = engine.asecond_step if mode in AWAITED else engine.second_step
    response = step(row)
    response = await response if isinstance(response, Awaitable) else response
    return await told_by_engine(response, mode), llamaindex_parts.model_of(engine).calls


if __name__ == "__main__":
    import asyncio

    async def main() -> None:
        """Go on from each row."""
        for line in sys.stdin:
            framework, name, row = json.loads(line)
            mode = "invoke" if framework == "langchain" else "query"
            told, calls = await second(framework, ALL[name], row, mode)
            print(json.dumps([told, [call.prompt for call in calls]]))  # noqa: T201

    asyncio.run(main())
