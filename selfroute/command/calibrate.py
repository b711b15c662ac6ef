"""Performs `selfroute calibrate`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from selfroute.command.evaluation_options import Calibrate
from selfroute.command.terminal import open_console
from selfroute.errors import InputError
from selfroute.evaluation.calibrating.calibrate import rule_of
from selfroute.evaluation.calibrating.wording import code_of, gains_table, in_words, rule_in_words
from selfroute.evaluation.reporting.show import show_summary, show_tables
from selfroute.evaluation.results import Evaluation
from selfroute.policies import Calibrated
from selfroute.policies.calibration import Calibration
from selfroute.policies.stored import to_json


def calibrate(options: Calibrate) -> None:
    """Calibrate by an evaluation that was saved, write the policy, and show it.

    Raises:
        InputError: The folder holds no evaluation.
        ConfigurationError: The evaluation cannot be calibrated by, or the file cannot be written.
    """
    policy = _load(options.folder).calibrate(options.token_share, options.price_of_wrong)
    policy.save(options.out)
    console = open_console(sys.stdout)
    if options.as_json:
        sys.stdout.write(to_json(policy.calibration))
    else:
        _show(console, policy, options.out)


def _load(folder: Path) -> Evaluation:
    path = folder / "results.json"
    if not folder.is_dir():
        msg = f"{folder} is not a folder: name one that `selfroute evaluate --out` or `Evaluation.save` wrote"
        raise InputError(msg)
    if not path.exists():
        kept = (
            "an evaluation that did not finish: run it again to go on"
            if any(folder.glob("*.jsonl"))
            else ("no evaluation: `selfroute evaluate --out` or `Evaluation.save` writes one")
        )
        msg = f"{folder} has no results.json, so it holds {kept}"
        raise InputError(msg)
    try:
        return Evaluation.load(folder)
    except (AttributeError, KeyError, TypeError) as error:
        msg = f"{path} was not written by this version ({type(error).__name__}): evaluate again into that folder"
        raise InputError(msg) from error
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}"
        raise InputError(msg) from error


def _show(console: Console, policy: Calibrated, out: Path) -> None:
    calibration = policy.calibration
    show_summary(console, _sentences(calibration))
    show_tables(console, [gains_table(calibration)])
    show_summary(console, [f"This rests on {calibration.counts}.", *calibration.notes])
    show_summary(console, _lines_to_paste(calibration, out))


def _sentences(calibration: Calibration) -> Iterator[str]:
    yield rule_in_words(calibration)
    one = calibration.counts.documents == 1
    tested = "questions" if one else "documents"
    yield f"Quality on {tested} that did not take part in the choice: {in_words(calibration.figures)}."
    if calibration.price_of_wrong != 1:
        yield f"Quality counts wrong answers at a price of {calibration.price_of_wrong:g}."


def _lines_to_paste(calibration: Calibration, out: Path) -> Iterator[str]:
    yield f"Written to {out}. To use it in a chain or a query engine, with bounds and sections:"
    yield ""
    yield "    from selfroute.policies import Calibrated"
    yield f"    escalation=Calibrated.load({json.dumps(str(out), ensure_ascii=False)}),"
    if calibration.escalate != "never":
        yield ""
        yield "Or without the file:"
        yield ""
        yield f"    {code_of(rule_of(calibration), calibration.sections)}"
