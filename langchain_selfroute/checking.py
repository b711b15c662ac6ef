"""Try the parts of a chain on one question, in a run of its own, without asking a model."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import (
    ensure_config,
    get_async_callback_manager_for_config,
    get_callback_manager_for_config,
    patch_config,
    set_config_context,
)

from langchain_selfroute.recording import recorded_inputs
from langchain_selfroute.running import Make
from selfroute import checking
from selfroute.checking import Findings


def check(make: Make, given: Any, config: RunnableConfig | None) -> Findings:
    """Return what was found when the parts of a chain were tried on a question."""
    config = ensure_config(config)
    manager = get_callback_manager_for_config(config).on_chain_start(None, recorded_inputs(given), **_run(config))
    try:
        call = make(manager=manager, config=config, streaming=False)
        with set_config_context(patch_config(config, callbacks=manager.get_child())) as context:
            findings = context.run(checking.check, call)
    except BaseException as error:
        manager.on_chain_error(error)
        raise
    manager.on_chain_end(_recorded(findings))
    return findings


async def acheck(make: Make, given: Any, config: RunnableConfig | None) -> Findings:
    """Do as `check` does, asynchronously."""
    config = ensure_config(config)
    start = get_async_callback_manager_for_config(config).on_chain_start
    manager = await start(None, recorded_inputs(given), **_run(config))
    try:
        call = make(manager=manager, config=config, streaming=False)
        with set_config_context(patch_config(config, callbacks=manager.get_child())) as context:
            findings = await context.run(asyncio.ensure_future, checking.acheck(call))
    except BaseException as error:
        await manager.on_chain_error(error)
        raise
    await manager.on_chain_end(_recorded(findings))
    return findings


def _run(config: RunnableConfig) -> dict[str, Any]:
    return {"name": config.get("run_name") or "check", "run_id": config.pop("run_id", None)}


def _recorded(findings: Findings) -> dict[str, Any]:
    return {"ok": findings.ok, "findings": [finding.as_dict() for finding in findings]}
