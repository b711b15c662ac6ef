"""The questions of all scenarios, asked in two steps by chains and engines that know nothing of one another.

Run as a program, this is the second process: it reads rows from standard input, and writes what became of them.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from both_parts import Outcome, Pipeline, pipeline_for
from scenarios import SCENARIOS, Scenario
from steering import STEERED

Row = dict[str, Any]
ALL: dict[str, Scenario] = {scenario.name: scenario for scenario in [*SCENARIOS, *STEERED]}


def asking(where: str, scenario: Scenario, **fields: Any) -> Pipeline:
    """A new chain or engine for a scenario."""
    return pipeline_for(where, scenario, **{"citations": True, "usage": True, **fields})


def told(found: Outcome) -> Row:
    """What came of a question, as plain JSON."""
    whole = {**found.told, "context": found.context, "retrieved": found.retrieved}
    return json.loads(json.dumps(whole))  # type: ignore[no-any-return]


async def main() -> None:
    """Go on from each row."""
    for line in sys.stdin:
        where, name, row = json.loads(line)
        found = await asking(where, ALL[name]).second_step(row)
        print(json.dumps([told(found), found.prompts]))  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main())
