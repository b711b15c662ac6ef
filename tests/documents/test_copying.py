"""What is made of parts is copied as they are; what cannot be copied is named."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

import cloudpickle
import pytest

from selfroute import CopyError, SelfRouteError
from selfroute.copying import CopiedAsParts
from selfroute.documents.cache import Cache, Recent

COPIES = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),  # noqa: S301
    "oldest pickle": lambda one: pickle.loads(pickle.dumps(one, protocol=2)),  # noqa: S301
    "cloudpickle": lambda one: pickle.loads(cloudpickle.dumps(one)),  # noqa: S301
}


class Whole(CopiedAsParts):
    """A whole of parts."""

    def __init__(self, **parts: Any) -> None:
        vars(self).update(parts, cache=Cache(), recent=Recent(5))


@pytest.mark.parametrize("name", COPIES)
def test_parts_are_copied_together_and_caches_start_empty(name: str) -> None:
    shared = ["a"]
    whole = Whole(first=shared, inner=Whole(second=shared))
    whole.recent.put("key", 1)
    made = COPIES[name](whole)
    assert (made.first, made.inner.second) == (["a"], ["a"])
    assert made.first is made.inner.second
    assert made.first is not shared
    assert (made.recent.get("key"), whole.recent.get("key")) == (None, 1)
    made.recent.put("other", 2)


@pytest.mark.parametrize("name", COPIES)
def test_a_whole_that_holds_itself_is_copied_once(name: str) -> None:
    whole = Whole()
    whole.itself = [whole]
    made = COPIES[name](whole)
    assert made.itself[0] is made


def test_a_shallow_copy_shares_the_parts_whatever_they_are() -> None:
    whole = Whole(lock=threading.Lock())
    made = copy.copy(whole)
    assert made is not whole
    assert vars(made) == vars(whole)


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("name", COPIES)
def test_the_part_that_cannot_be_copied_is_named_in_one_line(name: str, inside: bool) -> None:
    part = Whole(first=1, _client=[threading.Lock()], last=2)
    whole = Whole(a=1, inner=part) if inside else part
    with pytest.raises(CopyError) as refused:
        COPIES[name](whole)
    assert str(refused.value) == (
        "this Whole cannot be copied or pickled, because its client (list) cannot: cannot pickle '_thread.lock' "
        "object; make a new Whole, such as one in each process"
    )
    assert isinstance(refused.value, SelfRouteError)
    assert isinstance(refused.value, TypeError)


def test_what_only_a_richer_pickler_can_pickle_is_left_to_it() -> None:
    whole = Whole(function=lambda: 7)
    assert COPIES["cloudpickle"](whole).function() == 7
    with pytest.raises((pickle.PicklingError, AttributeError), match="<lambda>"):
        pickle.dumps(whole)


def test_after_a_refusal_the_next_one_is_refused_too() -> None:
    for _ in range(2):
        with pytest.raises(CopyError):
            pickle.dumps(Whole(lock=threading.Lock()))
