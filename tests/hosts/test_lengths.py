"""Both hosts: what an answered question asks of a store to estimate its savings."""

from __future__ import annotations

from typing import Any

import pytest

from hosts_documents import HOSTS, MINE, OTHER, house, of


@pytest.mark.parametrize("host", HOSTS)
async def test_lengths_are_asked_once_documents_were_read(host: str) -> None:
    home, asked = house(f"{host} chroma", [*of(MINE, "ash.md"), *of(OTHER, "birch.md")]), list[Any]()

    class Counted(type(home.documents())):  # type: ignore[misc]
        def _in_view(self, view: Any, *given: Any, **more: Any) -> Any:
            find = view.find

            def found() -> Any:
                asked.append(view)
                return find()

            view.find = found
            return super()._in_view(view, *given, **more)

    def draft(prompt: str) -> tuple[str, ...]:
        return ("unanswerable",) if "Unknown?" in prompt else ("It lifts 4.",)

    documents = Counted(home.store if host == "langchain" else home.index)
    pipeline = home.pipeline(home.search(k=1), documents, model={"draft": draft})

    async def times(question: str, owner: str) -> int:
        asked.clear()
        about = of(owner)[1].text
        known = (await pipeline.ask(question=f"{question} {about}")).usage["long_context_only"]
        assert (known is None) is (not asked)
        return len(asked)

    assert await times("Known?", MINE) == 0
    assert await times("Unknown?", OTHER) > 0
    assert await times("Known?", MINE) == 0  # another document was read
    assert await times("Known?", OTHER) == 1
