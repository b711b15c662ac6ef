"""Performs `selfroute calibrate`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

from selfroute.errors import ConfigurationError
from selfroute_workbench.command.evaluation_options import Calibrate
from selfroute_workbench.command.terminal import open_console
from selfroute_workbench.evaluation.choosing import Options
from selfroute_workbench.evaluation.looks import NAMES
from selfroute_workbench.evaluation.results import Evaluation
from selfroute_workbench.evaluation.show import show_summary
from selfroute_workbench.private import write


def calibrate(options: Calibrate) -> None:
    """Choose options by an evaluation that was saved, write them, and show what they bring.

    Raises:
        InputError: The folder holds no evaluation.
        ConfigurationError: Nothing can be chosen by the evaluation, or the file cannot be written.
    """
    chosen = Evaluation.load(options.folder).options(options.token_share, options.price_of_wrong)
    text = json.dumps(chosen, indent=2) + "\n"
    try:
        write(options.out, text)
    except OSError as error:
        msg = f"{options.out} cannot be written ({error.strerror}): name a file in a folder that exists"
        raise ConfigurationError(msg) from error
    if options.as_json:
        sys.stdout.write(text)
    else:
        show_summary(open_console(sys.stdout), _sentences(chosen, options))


def _sentences(chosen: Options, options: Calibrate) -> Iterator[str]:
    name = NAMES[chosen.rule.strategy]
    yield f"{name[0].upper()}{name[1:]}: {json.dumps(chosen)}"
    yield f"On {chosen.counts}, each tested without its document: quality {chosen.figures}."
    if options.price_of_wrong != 1:
        yield f"Quality counts wrong answers at a price of {options.price_of_wrong:g}."
    for other in ("rag", "self_route", "long_context"):
        gain = chosen.gains[other]
        shown = "" if gain.is_distinguishable else ", no difference shown"
        yield f"  {gain} over {NAMES[other]}{shown}, for {100 * gain.token_share:+.1f} % of the tokens"
    yield from chosen.notes
    yield ""
    pasted = f"SelfRouteChain.from_vectorstore(store, llm, **json.load(open({str(options.out)!r})))"
    yield f"Written to {options.out}: {pasted}"
