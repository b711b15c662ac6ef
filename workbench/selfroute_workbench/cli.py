"""The `selfroute` command: a demo that needs no key, questions to your own files, and evaluations.

Exit codes: 0 done; 1 an error on the way (the provider, a missing package), or what `check` found; 2 an error in the
call (a file, an option, a model's name or key); 130 interrupted. Errors are one line on stderr.
"""
# ruff: noqa: PLC0415 - heavy modules are imported when a command runs

from __future__ import annotations

import pkgutil
import re
import sys
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any

from selfroute import __version__
from selfroute.errors import ConfigurationError, InputError, SelfRouteError

try:
    import typer
    from typer.core import TyperCommand

    from selfroute_workbench.command import batch_options, evaluation_options, options
except ModuleNotFoundError:
    # The console script imports this module first: anything else would show its user a traceback.
    sys.exit('selfroute: the command needs the package typer: pip install "selfroute-workbench"')

_MODEL = re.compile(r"[\w-]+:(?![\\/])")
"""How `provider:name` begins; C:\\questions.jsonl is a file."""

app = typer.Typer(name="selfroute", add_completion=False, rich_markup_mode="markdown", pretty_exceptions_enable=False)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - as typer calls it
    if wanted:
        typer.echo(f"selfroute {__version__}")
        raise typer.Exit


@app.callback()
def _selfroute(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version")
    ] = False,
) -> None:
    """Answer from retrieved passages; read whole documents only when the model declines."""


class _JudgeAlone(TyperCommand):
    """A command whose option `--judge` may stand without a value, which typer does not know."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give `--judge` an empty value where no `provider:name` follows."""
        following = [*args[1:], ""]
        alone = (each == "--judge" and not _MODEL.match(after) for each, after in zip(args, following, strict=True))
        given = ["--judge=" if bare else each for each, bare in zip(args, alone, strict=True)]
        parsed: list[str] = super().parse_args(ctx, given)
        return parsed


# typer makes an object of the class that was asked for, and `main` runs it.
app.command("demo")(options.Demo)
app.command("ask")(options.Ask)
app.command("chat")(options.Chat)
app.command("check")(options.Check)
app.command("mcp")(options.Mcp)
app.command("evaluate", cls=_JudgeAlone)(evaluation_options.Evaluate)
app.command("questions")(evaluation_options.Questions)
app.command("calibrate")(evaluation_options.Calibrate)
app.command("view")(evaluation_options.View)
_batch = typer.Typer(
    help="Ask through a provider's batch interface: half the price, answers within a day.", rich_markup_mode="markdown"
)
_batch.command("export")(batch_options.Export)
_batch.command("import")(batch_options.Import)
app.add_typer(_batch, name="batch")


def main(args: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Args:
        args: What was typed after `selfroute`; `sys.argv` if None.
    """
    try:
        command = _parser()(args, standalone_mode=False)
    except KeyboardInterrupt:
        return _say("interrupted", 130)
    except Exception as error:
        if not hasattr(error, "format_message"):  # typer's error for a wrong option depends on its version
            raise
        path = getattr(getattr(error, "ctx", None), "command_path", None) or "selfroute"
        return _say(f"{error.format_message()} ({path} --help explains)", 2)
    return _perform(command) if isinstance(command, options.Command) else 0


@cache
def _parser() -> Any:
    return typer.main.get_command(app)


def _perform(command: options.Command) -> int:
    try:
        from rich.console import Console

        with Console(stderr=True).status("Starting"):  # the imports take a few seconds
            perform = pkgutil.resolve_name(command.performed_by)
        return 1 if perform(command) is False else 0
    except KeyboardInterrupt:
        return _say("interrupted", 130)
    except (ConfigurationError, InputError) as error:
        return _say(str(error), 2)
    except SelfRouteError as error:
        return _say(str(error), 1)
    except ModuleNotFoundError as error:
        return _say(f'the command needs the package {error.name}: pip install "{command.brought_by}"', 1)
    except Exception as error:  # noqa: BLE001 - the providers' clients have no error in common
        from selfroute.error_text import one_line, without_secrets

        address: str | None = getattr(command, "base_url", None)
        said = one_line(error)
        if address and "onnect" in type(error).__name__:
            said = f"{without_secrets(address)} does not answer: {said}"
        return _say(said, 1)


def _say(message: str, code: int) -> int:
    line = " ".join(message.split())
    typer.echo(f"selfroute: {''.join(filter(str.isprintable, line))}", err=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
