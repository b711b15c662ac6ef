"""What a chain streams: chunks that add up to its output."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, closing
from typing import TYPE_CHECKING

from langchain_core.runnables.utils import AddableDict

from selfroute.drivers import astream, stream
from selfroute.flow import Decided

if TYPE_CHECKING:
    from langchain_selfroute.steps import AsyncSteps, Steps
    from selfroute.flow import Route


def chunks_of(steps: Steps) -> Generator[AddableDict, None, None]:
    """Run the flow and hand over its output: nothing before the route is known; closing this stops the model."""
    route: Route | None = None
    with closing(stream(steps.flow(), steps)) as items:
        for item in items:
            if isinstance(item, Decided):
                route = item.route
            elif not isinstance(item, str):
                yield AddableDict(steps.rest(item))
            elif route:
                yield AddableDict(steps.head(route, item))
                route = None
            else:
                yield AddableDict(answer=item)


async def achunks_of(steps: AsyncSteps) -> AsyncGenerator[AddableDict, None]:
    """As `chunks_of`."""
    route: Route | None = None
    async with aclosing(astream(steps.flow(), steps)) as items:
        async for item in items:
            if isinstance(item, Decided):
                route = item.route
            elif not isinstance(item, str):
                yield AddableDict(steps.rest(item))
            elif route:
                yield AddableDict(steps.head(route, item))
                route = None
            else:
                yield AddableDict(answer=item)
