"""What a text takes in tokens, without a tokenizer: by script and kind, and as the provider counted before."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from selfroute.languages.tokens import count_tokens
from selfroute.usage.prices import PricedModel
from selfroute.usage.tokens import Calibration, fewest_tokens, is_cut

PROSE = (
    "The committee met again in the long hall. Ms Okafor took the chair, and the minutes of the last meeting were read "
    "and agreed. The crane had been repaired in May, at a cost that nobody had expected. "
)
# Each with what the tokenizers o200k_base and cl100k_base make of it.
TEXTS: dict[str, tuple[str, int, int]] = {
    "English": (PROSE, 46, 46),
    "German": (
        (
            "Der Ausschuss beschloss im April, den Kran zu reparieren. Den Vorsitz führte Frau Okafor, das Protokoll "
            "Herr Lin. Der Umschlag des Hafens stieg im vergangenen Jahr um zwölf Prozent."
        ),
        46,
        57,
    ),
    "Russian": (
        (
            "Комитет решил в апреле отремонтировать кран и утвердил бюджет. Заседание вела госпожа Окафор, протокол "
            "составил господин Линь."
        ),
        40,
        66,
    ),
    "Chinese": (
        "委员会在四月的会议上决定修理起重机，并批准了预算。会议由王女士主持，李先生记录。港口去年的吞吐量增长了百分之十二。",
        41,
        66,
    ),
    "Japanese": (
        "委員会は四月の会議でクレーンの修理を決定し、予算を承認しました。会議の議長は田中さんが務め、鈴木さんが議事録を作成しました。",
        54,
        72,
    ),
    "code": (
        (
            "static int grow(list *l, size_t n)\n{\n    void **p = realloc(l->items, (l->size + n) * sizeof(*p));\n"
            "    if (p == NULL)\n        return -ENOMEM;\n    memset(&p[l->size], 0, n * sizeof(*p));\n"
            "    l->items = p;\n}\n"
        ),
        71,
        71,
    ),
    "table": (
        "crane,2026-05-14,1204.50,17,0.0313\nquay,2026-05-21,88.75,4,0.1250\nboom,2026-06-02,1310.00,21,0.0072\n",
        64,
        64,
    ),
    "emoji": ("Launched today 🚀🎉 Thanks 🙏 See you at the party 🥳🍕 ✅ done ❌ not done 🔥🔥", 29, 36),
}
ONE, OTHER = PricedModel("one"), PricedModel("other")


@pytest.mark.parametrize("name", TEXTS)
def test_count_tokens_by_script_and_kind(name: str) -> None:
    text, o200k, cl100k = TEXTS[name]
    assert (o200k + cl100k) / 2 == pytest.approx(count_tokens(text), rel=0.4)


def test_count_tokens_of_prose() -> None:
    for length in range(len(PROSE)):
        assert count_tokens(PROSE[:length]) == -(-length // 4)


@given(st.text(st.characters(codec=None)))
def test_count_tokens_of_any_text(text: str) -> None:
    assert len(text) / 4 <= count_tokens(text) <= 2.5 * len(text) + 1
    assert 0 <= fewest_tokens(text) <= len(text)


@pytest.mark.parametrize("name", TEXTS)
def test_count_tokens_of_a_long_text(name: str) -> None:
    text = TEXTS[name][0]
    times = 3_000_000 // len(text)
    assert count_tokens(text * times) == pytest.approx(count_tokens(text * 100) * times / 100, rel=0.02)


@pytest.mark.parametrize("name", TEXTS)
def test_fewest_tokens_are_fewer_than_any_tokenizer_finds(name: str) -> None:
    text, o200k, cl100k = TEXTS[name]
    assert fewest_tokens(text) < min(o200k, cl100k)
    assert not is_cut(text * 1000, counted=min(o200k, cl100k) * 1000)


@pytest.mark.parametrize("name", ["English", "German", "Russian", "Chinese", "Japanese"])
def test_is_cut_where_the_count_is_far_too_low(name: str) -> None:
    text, o200k, _ = TEXTS[name]
    assert is_cut(text * 1000, counted=o200k * 1000 // 4)
    assert not is_cut(text[:200], counted=1)


def test_calibration_learns_by_model() -> None:
    calibration, text = Calibration(), PROSE * 50
    calibration.learn(ONE, text=text, counted=count_tokens(text) * 2)
    assert (calibration.ratio(ONE), calibration.ratio(OTHER)) == (2, 1)
    calibration.learn(ONE, text=text, counted=count_tokens(text))
    assert calibration.ratio(ONE) == 1.5
    for learns, short, counted in ((True, PROSE, 500), (False, text, 9_000)):
        calibration = Calibration(learns=learns)
        calibration.learn(ONE, text=short, counted=counted)
        assert calibration.ratio(ONE) == 1


def test_calibration_learns_from_many_threads() -> None:
    calibration, text = Calibration(), PROSE * 50
    models, counted = [PricedModel(f"{n}") for n in range(300)], count_tokens(text) * 2
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda one: calibration.learn(one, text=text, counted=counted), models * 8))
    assert {calibration.ratio(one) for one in models[280:]} == {2}


def test_calibration_keeps_its_ratio_while_counts_differ_little() -> None:
    calibration, text = Calibration(), PROSE * 50
    for percent in (103, 97, 104, 96):
        calibration.learn(ONE, text=text, counted=count_tokens(text) * percent // 100)
        assert calibration.ratio(ONE) == 1
    for _ in range(9):
        calibration.learn(ONE, text=text, counted=count_tokens(text) * 108 // 100)
    assert calibration.ratio(ONE) == pytest.approx(1.08, abs=0.03)


@given(st.lists(st.integers(0, 10**9)))
def test_calibration_is_bounded(counts: list[int]) -> None:
    calibration = Calibration()
    for counted in counts:
        calibration.learn(ONE, text=PROSE * 50, counted=counted)
    assert 0.5 <= calibration.ratio(ONE) <= 4
