"""The body of `selfroute view`; heavy, so imported only when it runs."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path

from selfroute.command.terminal import open_console
from selfroute.errors import ConfigurationError
from selfroute.evaluation.reporting.view import view as page_of
from selfroute.private import write

_PAGE = "view.html"


def view(path: Path, *, out: Path | None, most: int, opens: bool) -> None:
    """Write the page of a folder or a file, open it, and say where it is.

    Args:
        path: The folder or file.
        out: The page; by default `view.html` in the folder, or beside the file.
        most: How many questions to show.
        opens: Whether to open it in a browser.

    Raises:
        InputError: There are no results.
        ConfigurationError: The page cannot be written.
    """
    page = out or (path / _PAGE if path.is_dir() else path.with_suffix(".html"))
    text = page_of(path, most=most)
    try:
        write(page, text, errors="replace")
    except OSError as error:
        msg = f"{page} cannot be written ({error.strerror}): name another file with --out"
        raise ConfigurationError(msg) from error
    opened = opens and webbrowser.open(page.resolve().as_uri())
    open_console(sys.stdout).print(f"{page}{'' if opened else ': open it in a browser'}", soft_wrap=True)
