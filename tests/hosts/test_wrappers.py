"""The frameworks' own retrievers around a search are seen through: its filter is the wall, and nothing else is one."""

from __future__ import annotations

from typing import Any

import pytest

import langchain_wrappers
import llamaindex_wrappers
from hosts_documents import HOSTS, ITS_OWN, MINE, NOTHING_HIDDEN, OTHER, Pipeline, in_turn, refuses, shared
from langchain_stores import text_of
from scenarios import STARTED
from selfroute.errors import ConfigurationError

OF = dict(zip(HOSTS, (langchain_wrappers, llamaindex_wrappers), strict=True))
everywhere = in_turn(["memory", "chroma"])
every_wrapper = pytest.mark.parametrize(
    ("host", "name"), [(host, name) for host in HOSTS for name in OF[host].WRAPPERS]
)


OF_WHOLES = {"parents, whole", "parents in bytes", "summaries of wholes"}  # passages of which nothing more can be read


def _asked(home: Any, name: str, *parts: Any) -> Pipeline:
    """A pipeline that reads documents, after a draft if that leaves them anything new."""
    fields = STARTED if name in OF_WHOLES else {}
    return home.pipeline(*parts, **fields)  # type: ignore[no-any-return]


def _built(host: str, name: str, kind: str, **shelves: Any) -> Any:
    return OF[host].built(name, kind, **shelves)


async def _reads_its_own(pipeline: Pipeline, name: str, mode: str) -> None:
    """The document is read whole and each text once; the other tenant is never in its prompt."""
    for _ in range(2):
        pipeline.model.calls.clear()
        answered = await pipeline.ask("sync" if name == "rephrased" else mode)  # the host's own has no async
        assert not any(OTHER in call.prompt for call in pipeline.model.calls if call.step == "long_context")
        assert [text.split() for text in answered.read] == [text_of(MINE).split()]
        assert answered.documents[0].about["tenant"] == MINE
        assert answered.documents[0].label["gaps"] == []


@everywhere
@every_wrapper
@pytest.mark.parametrize("varied", [False, True], ids=["alike", "varied"])
async def test_wrapper_without_filter_reads_the_whole(host: str, name: str, varied: bool, kind: str, mode: str) -> None:
    home, retriever = _built(host, name, kind, varied=varied)
    await _reads_its_own(_asked(home, name, retriever), name, mode)


@everywhere
@every_wrapper
async def test_documents_behind_a_wrapper_are_known(host: str, name: str, kind: str, mode: str) -> None:
    """Except where nothing but words is searched, in copies of the texts."""
    home, retriever = _built(host, name, kind, owners=(MINE, OTHER), condition=ITS_OWN)
    fields = STARTED if name in OF_WHOLES else {}
    if name in ("words", "fusion of words"):
        with pytest.raises(ConfigurationError, match=r"documents is missing.* pass documents="):
            home.alone(retriever, **fields)
    else:
        await _reads_its_own(home.alone(retriever, **fields), name, mode)


@everywhere
@every_wrapper
@pytest.mark.parametrize("declared", [None, ITS_OWN, NOTHING_HIDDEN], ids=["nothing", "the filter", "none hidden"])
async def test_wrapper_keeps_the_filter_inside(host: str, name: str, kind: str, declared: Any, mode: str) -> None:
    home, retriever = _built(host, name, kind, owners=(MINE, OTHER), condition=ITS_OWN)
    await _reads_its_own(_asked(home, name, retriever, home.documents(declared)), name, mode)


@everywhere
@every_wrapper
async def test_without_a_filter_a_text_of_either_tenant_is_read(host: str, name: str, kind: str, mode: str) -> None:
    """Both have a document of one name: what is read is the text that was found, or both."""
    home, retriever = _built(host, name, kind, owners=(MINE, OTHER))
    text = "".join((await home.pipeline(retriever).ask("sync" if name == "rephrased" else mode)).read)
    assert max(text.count(owner) for owner in (MINE, OTHER)) >= text_of(MINE).count(MINE)


@everywhere
@pytest.mark.parametrize(("host", "name"), [(host, name) for host in HOSTS for name in OF[host].UNSEEN])
async def test_what_may_hide_more_than_its_filters_say_is_refused(host: str, name: str, kind: str, mode: str) -> None:
    home = shared(f"{host} {kind}")
    retriever = OF[host].UNSEEN[name](home)
    with pytest.raises(ConfigurationError, match=r"documents is missing.* pass documents="):
        home.alone(retriever)
    for _ in range(2):
        await refuses(home.pipeline(retriever), mode, "in tenant")
    await _reads_its_own(home.pipeline(retriever, home.documents(ITS_OWN)), name, mode)
