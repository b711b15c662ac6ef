"""The body of `selfroute check`; heavy, so imported only when it runs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace

from selfroute.checking import Finding, Findings
from selfroute.command import answers
from selfroute.command.asking import Options, open_files, print_json
from selfroute.command.reading import Sources
from selfroute.command.terminal import open_console
from selfroute.command.texts import Text
from selfroute.prompts import CHECK_QUESTION


def check(options: Options, *, sources: Sources, question: str | None) -> bool:
    """Try what `ask` would use on a question, and print what was found.

    Args:
        options: The options.
        sources: The user's own files.
        question: The question to retrieve for; None for one that may find anything.

    Returns:
        Whether nothing has to be changed.
    """
    asked = CHECK_QUESTION if question is None else question
    with open_files(options, sources, questions=[asked]) as (session, library, _):
        found = session.check(asked)
    findings = Findings(_named(finding, library.texts.values(), library.names) for finding in found)
    if options.as_json:
        print_json({"ok": findings.ok, "findings": [finding.as_dict() for finding in findings]})
    else:
        answers.show_findings(open_console(sys.stdout), findings)
    return findings.ok


def _named(finding: Finding, texts: Iterable[Text], names: Mapping[str, str]) -> Finding:
    """Call the files as the user does, not by what names them in the index."""
    message = finding.message
    for text in texts:
        for name in (text.source, text.key):
            message = message.replace(name, names[text.source])
    return replace(finding, message=message)
