"""Stream the output of a chain as chunks that add up to it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, closing

from langchain_core.runnables.utils import AddableDict

from langchain_selfroute.recording import RecordedChunk
from langchain_selfroute.steps import AsyncSteps, Steps
from selfroute.drivers import astream, stream
from selfroute.effects import Decided


def chunks_of(steps: Steps) -> Generator[AddableDict, None, None]:
    """Run the flow and yield its output in chunks, the first when there is text; closing this stops the model."""
    decided: Decided | None = None
    with closing(stream(steps.flow(), steps)) as items:
        for item in items:
            if isinstance(item, Decided):
                decided = item
            elif not isinstance(item, str):
                yield AddableDict(steps.rest(item))
            elif decided:
                yield RecordedChunk(steps.head(decided, item))
                decided = None
            else:
                yield AddableDict(answer=item)


async def achunks_of(steps: AsyncSteps) -> AsyncGenerator[AddableDict, None]:
    """Do as `chunks_of` does, asynchronously."""
    decided: Decided | None = None
    async with aclosing(astream(await steps.flow(), steps)) as items:
        async for item in items:
            if isinstance(item, Decided):
                decided = item
            elif not isinstance(item, str):
                yield AddableDict(steps.rest(item))
            elif decided:
                yield RecordedChunk(steps.head(decided, item))
                decided = None
            else:
                yield AddableDict(answer=item)
