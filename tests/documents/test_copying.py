"""What is made of parts is copied with them; a deep copy that fails names the field."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

import cloudpickle
import pytest

from selfroute.copies import NamesUncopied
from selfroute.documents.cache import Cache, Recent

COPIES = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),  # noqa: S301
    "cloudpickle": lambda one: pickle.loads(cloudpickle.dumps(one)),  # noqa: S301
}


class Whole(NamesUncopied):
    """A whole of parts."""

    def __init__(self, **parts: Any) -> None:
        vars(self).update(parts, cache=Cache(), recent=Recent(5))


@pytest.mark.parametrize("name", COPIES)
def test_copy_shares_parts_and_starts_with_empty_caches(name: str) -> None:
    shared = ["a"]
    whole = Whole(first=shared, inner=Whole(second=shared))
    whole.itself = whole
    whole.recent.put("key", 1)
    made = COPIES[name](whole)
    assert made.itself is made
    assert made.first is made.inner.second is not shared
    assert (made.first, made.recent.get("key"), whole.recent.get("key")) == (["a"], None, 1)


def test_deepcopy_names_the_field() -> None:
    whole = Whole(a=1, inner=Whole(first=1, _client=[threading.Lock()]))
    with pytest.raises(TypeError) as refused:
        copy.deepcopy(whole)
    why = "Whole.client cannot be copied: cannot pickle '_thread.lock' object"
    assert str(refused.value) == f"Whole.inner cannot be copied: {why}"
