"""Performs `selfroute view`."""

from __future__ import annotations

import sys
import webbrowser

from selfroute.errors import ConfigurationError
from selfroute_workbench.command.evaluation_options import View
from selfroute_workbench.command.terminal import open_console
from selfroute_workbench.evaluation.pages.view import view as page_of
from selfroute_workbench.private import write

_PAGE = "view.html"


def view(options: View) -> None:
    """Write the page of a folder or a file, open it, and say where it is.

    Raises:
        InputError: There are no results.
        ConfigurationError: The page cannot be written.
    """
    path = options.folder
    page = options.out or (path / _PAGE if path.is_dir() else path.with_suffix(".html"))
    text = page_of(path, most=options.most)
    try:
        write(page, text, errors="replace")
    except OSError as error:
        msg = f"{page} cannot be written ({error.strerror}): name another file with --out"
        raise ConfigurationError(msg) from error
    opened = options.opens and webbrowser.open(page.resolve().as_uri())
    open_console(sys.stdout).print(f"{page}{'' if opened else ': open it in a browser'}", soft_wrap=True)
