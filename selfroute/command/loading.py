"""Imports the part of the command for one framework."""

from __future__ import annotations

from selfroute.command.framework import Framework, Name


def load(name: Name) -> Framework:
    """Import a framework's part; it is heavy, and the framework perhaps not installed."""
    if name == "llamaindex":
        from selfroute.command import with_llamaindex  # noqa: PLC0415

        return with_llamaindex
    from selfroute.command import with_langchain  # noqa: PLC0415

    return with_langchain
