"""The law: whatever is not exactly a calibration of this version is refused, with where and what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from calibrating_parts import made_up
from selfroute.errors import ConfigurationError
from selfroute.evaluation.calibrating.calibrate import calibrate
from selfroute.policies import Calibrated
from selfroute.policies.stored import load, save, to_json

FOUND = calibrate(made_up(100, 20))
GOOD = json.loads(to_json(FOUND))


def changed(**values: Any) -> str:
    return json.dumps({**GOOD, **values})


WRONG = {
    "no JSON": "{",
    "an empty file": "",
    "a list": "[]",
    "no text": "\ud800",
    "no version": json.dumps({key: value for key, value in GOOD.items() if key != "version"}),
    "another version": changed(version=1),
    "a version that only looks right": changed(version=True),
    "an unknown key": changed(gate=1),
    "a missing key": json.dumps({key: value for key, value in GOOD.items() if key != "gains"}),
    "an unknown way to escalate": changed(escalate="always"),
    "a bound above 100": changed(doubt_below=101),
    "a bound that is text": changed(doubt_below="50"),
    "a bound that is a switch": changed(stop_below=True),
    "one bound only": changed(stop_below=None),
    "bounds without grades": changed(escalate="declined"),
    "sections of nothing": changed(sections=0),
    "sections that become fewer": changed(sections=[16000, 4000]),
    "sections that are a switch": changed(sections=True),
    "no sections as a list": changed(sections=[]),
    "sections that are never read": changed(escalate="never", doubt_below=None, stop_below=None, sections=4000),
    "no number": changed(price_of_wrong=float("nan")),
    "infinity": changed(price_of_wrong=float("inf")),
    "a number beyond all": changed(price_of_wrong=10**400),
    "a share above 1": changed(token_share=1.2),
    "counts of another kind": changed(counts=[1]),
    "counts with more": changed(counts={**GOOD["counts"], "more": 1}),
    "figures without quality": changed(figures={"low": 0.1}),
    "a gain over nobody": changed(gains={"magic": GOOD["gains"]["rag"]}),
    "a gain without an end": changed(gains={"rag": {"gain": 0.1}}),
    "notes that are no text": changed(notes=[1]),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_calibration_is_refused_in_one_line_that_names_the_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text(WRONG[name], encoding="utf-8", errors="surrogatepass")
    for read in (load, Calibrated.load):
        with pytest.raises(ConfigurationError, match=r"policy\.json: .*calibrat") as caught:
            read(path)
        assert "\n" not in str(caught.value)


def test_a_file_is_read_back_and_named_in_errors(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    save(FOUND, path)
    assert load(path) == FOUND
    with pytest.raises(ConfigurationError, match=r"missing\.json cannot be read .*selfroute calibrate FOLDER --out"):
        load(tmp_path / "missing.json")
    with pytest.raises(ConfigurationError, match=r"cannot be written .*a folder that exists"):
        save(FOUND, tmp_path / "nowhere" / "policy.json")
