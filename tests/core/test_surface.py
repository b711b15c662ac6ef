"""What the packages offer by name: what users need, and all of it."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec

import pytest

import selfroute

OFFERED = {
    "selfroute": "PAPER ConfigurationError DocumentNotFoundError Gate InputError Ledger NoReplyError ReplyError "
    "SelfRouteError UnknownOptionError Verdict __version__ declines",
    "selfroute.answerability": "Gate Signal Verdict declines declines_anywhere",
    "selfroute.checking": "Finding Findings acheck check",
    "selfroute.citations": "Citation locate",
    "selfroute.documents": "Chunk RebuiltDocument rebuild",
    "selfroute.languages": "Language add_language",
    "selfroute.policies": "Budget Case Never Ruling",
    "selfroute.usage": "Cost Entry Ledger StepUsage Usage",
    "langchain_selfroute": "SelfRouteChain SelfRouteInput SelfRouteLedger SelfRouteMiddleware SelfRouteOutput "
    "StoredDocuments",
    "llamaindex_selfroute": "SelfRouteDecisionEvent SelfRouteLedger SelfRouteQueryEngine SelfRouteQueryEvent "
    "SelfRouteSynthesizer SelfRouteWorkflow StoredDocuments citation_nodes",
}
ELSEWHERE = {
    **dict.fromkeys(("SelfRouteChain", "SelfRouteMiddleware"), "langchain_selfroute"),
    **dict.fromkeys(("SelfRouteQueryEngine", "SelfRouteSynthesizer", "SelfRouteWorkflow"), "llamaindex_selfroute"),
}


@pytest.mark.parametrize("name", OFFERED)
def test_what_a_package_offers(name: str) -> None:
    package = import_module(name)
    missing = set() if find_spec("langchain") else {"SelfRouteMiddleware"}
    assert {*package.__all__} == {*OFFERED[name].split()} - missing
    assert {*package.__all__} <= {*dir(package)}
    assert all(hasattr(package, each) for each in package.__all__)


def test_import_all_without_agents() -> None:
    code = (
        "import sys; sys.modules['langchain'] = None; from langchain_selfroute import *; print(SelfRouteChain)\n"
        "from langchain_selfroute import SelfRouteMiddleware"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    assert "SelfRouteChain" in done.stdout
    assert "ImportError: SelfRouteMiddleware needs LangChain's agents: pip install 'langchain>=1.2.10'" in done.stderr


@pytest.mark.parametrize("name", ELSEWHERE)
def test_names_of_other_packages(name: str) -> None:
    assert not hasattr(selfroute, name)
    where = f"{name} is in another package: from {ELSEWHERE[name]} import {name}"
    with pytest.raises(AttributeError, match=where):
        getattr(selfroute, name)
    with pytest.raises(ImportError, match=where):
        exec(f"from selfroute import {name}")  # noqa: S102
