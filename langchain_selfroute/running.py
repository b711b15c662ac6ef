"""Run a chain, or one of its two steps, as LangChain runs a runnable: with a run of its own, at once or as a stream."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import (
    ensure_config,
    get_async_callback_manager_for_config,
    get_callback_manager_for_config,
    patch_config,
    set_config_context,
)
from langchain_core.runnables.utils import AddableDict

from langchain_selfroute.recording import recorded, recorded_inputs, whole_chunk
from langchain_selfroute.streaming import ChainCall, achunks_of, chunks_of
from selfroute.calls.drivers import arun, run
from selfroute.flow import Answer
from selfroute.hangup import cancelled_once

Function = TypeVar("Function", bound=Callable[..., Any])
Make = Callable[..., ChainCall]
"""Makes a call from `manager`, `config` and `streaming`, as in `LangChainHost`."""
Output = Callable[[ChainCall, Answer], dict[str, Any]]
"""Returns the output of a call and its answer."""


def invoke(runnable: Runnable[Any, Any], given: Any, config: RunnableConfig | None, make: Make, output: Output) -> Any:
    """Run a call, and return its output.

    Args:
        runnable: The chain, or one of its steps, which names the run.
        given: The input, as it is recorded.
        config: The config of the call.
        make: Makes the call.
        output: Returns the output.
    """
    config = ensure_config(config)
    manager = get_callback_manager_for_config(config).on_chain_start(
        None, recorded_inputs(given), **_run_fields(runnable, config)
    )
    try:
        call = make(manager=manager, config=config, streaming=False)
        with set_config_context(patch_config(config, callbacks=manager.get_child())) as context:
            result = output(call, context.run(lambda: run(call.flow(), call)))
    except BaseException as error:
        manager.on_chain_error(error)
        raise
    manager.on_chain_end(recorded(result))
    return result


async def ainvoke(
    runnable: Runnable[Any, Any], given: Any, config: RunnableConfig | None, make: Make, output: Output
) -> Any:
    """Do as `invoke` does, asynchronously."""
    config = ensure_config(config)
    fields = _run_fields(runnable, config)
    manager = await get_async_callback_manager_for_config(config).on_chain_start(None, recorded_inputs(given), **fields)
    try:
        call = make(manager=manager, config=config, streaming=False)
        with set_config_context(patch_config(config, callbacks=manager.get_child())) as context:
            answer = await cancelled_once(context.run(asyncio.ensure_future, _answer(call)))
        result = output(call, answer)
    except BaseException as error:
        await manager.on_chain_error(error)
        raise
    await manager.on_chain_end(recorded(result))
    return result


async def _answer(call: ChainCall) -> Answer:
    return await arun(await call.aflow(), call)


def stream(
    runnable: Any, given: Any, config: RunnableConfig | None, make: Make, options: Mapping[str, Any]
) -> Generator[Any, None, None]:
    """Run a call, and yield its output in chunks; closing the stream stops the model.

    Args:
        runnable: The chain, or its second step, which names the run.
        given: The input, as it is recorded.
        config: The config of the call.
        make: Makes the call.
        options: Those of the models, for the record.
    """
    inner: list[Generator[AddableDict, None, None]] = []

    @_stated
    def transform(_: Iterator[Any], run_manager: CallbackManagerForChainRun, **kwargs: Any) -> Iterator[Any]:  # noqa: ARG001
        inner.append(chunks_of(partial(make, manager=run_manager, config=config, streaming=True)))
        return inner[0]

    outer: Any = runnable._transform_stream_with_config(  # noqa: SLF001 - what every runnable streams with
        iter([recorded_inputs(given)]), transform, config, **options
    )
    try:
        for chunk in outer:  # `yield from` would close `outer` first
            yield whole_chunk(chunk)
    finally:
        for chunks in inner:  # the model's run has to end before that of the chain
            chunks.close()
        outer.close()


async def astream(
    runnable: Any, given: Any, config: RunnableConfig | None, make: Make, options: Mapping[str, Any]
) -> AsyncGenerator[Any, None]:
    """Do as `stream` does, asynchronously."""
    inner: list[AsyncGenerator[AddableDict, None]] = []

    async def once() -> AsyncIterator[Any]:
        yield recorded_inputs(given)

    @_stated
    def transform(
        _: AsyncIterator[Any],
        run_manager: AsyncCallbackManagerForChainRun,
        **kwargs: Any,  # noqa: ARG001
    ) -> AsyncIterator[Any]:
        inner.append(achunks_of(partial(make, manager=run_manager, config=config, streaming=True)))
        return inner[0]

    outer: Any = runnable._atransform_stream_with_config(once(), transform, config, **options)  # noqa: SLF001
    try:
        first = await cancelled_once(anext(outer))  # until then a model may not have begun to reply
        yield whole_chunk(first)
        async for chunk in outer:
            yield whole_chunk(chunk)
    finally:
        for chunks in inner:
            await chunks.aclose()
        await outer.aclose()


_TRANSFORM = inspect.signature(lambda given, run_manager, **kwargs: None)  # noqa: ARG005


def _stated(transform: Function) -> Function:
    """State a function's signature, which LangChain inspects twice for every stream: that takes longer than routing."""
    transform.__signature__ = _TRANSFORM  # type: ignore[attr-defined]
    return transform


def _run_fields(runnable: Runnable[Any, Any], config: RunnableConfig) -> dict[str, Any]:
    """Return the name and id of the runnable's own run, and remove the id from the config."""
    return {"name": config.get("run_name") or runnable.get_name(), "run_id": config.pop("run_id", None)}
