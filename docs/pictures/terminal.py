"""Records `selfroute demo` in a terminal of 80 columns, as an SVG whose lines appear one after another.

What is shown is what the command printed: it runs in a pseudo-terminal, and pyte, a terminal emulator, says what stands
on the screen at the end. Only the time is not real: a line takes a fifth of a second. Where motion is not wanted
(`prefers-reduced-motion`) or not possible, the picture is the end of the recording.
"""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import sys
import termios
from collections.abc import Iterator, Mapping
from html import escape
from itertools import groupby
from subprocess import Popen
from typing import Any

COLUMNS, ROWS = 80, 200  # so many rows that nothing leaves the screen
SHOWN = 26  # rows of the picture
COMMAND = (sys.executable, "-m", "selfroute_workbench.cli", "demo")
SECONDS = 0.2
OPENING = 9  # rows that are there at once
CHARACTER, ROW, MARGIN, BAR = 8.4, 19, 14, 34
PLAIN, MUTED, BACK, EDGE = "#d6dde6", "#93a0ae", "#10161d", "#3b4652"
COLOURS = {"red": "#ff8f87", "green": "#63d188", "brown": "#f0c674", "magenta": "#d9a5f5", "cyan": "#6cd0e0"}
_DIM = ("\x1b[2m", "\x1b[38;5;245m")  # pyte knows no dim text, but a grey one
_GREY = "8a8a8a"


def draw_recording() -> str:
    """Run the demo, and return the picture of it."""
    rows = [_row(line) for line in screen_of(run_demo())]
    lines = [f'<text y="{number * ROW}"{_delay(number)}>{row}</text>' for number, row in enumerate(rows) if row]
    width = round(COLUMNS * CHARACTER + 2 * MARGIN)
    height = BAR + SHOWN * ROW + 2 * MARGIN
    dots = "".join(f'<circle cx="{20 + 20 * n}" cy="{BAR / 2}" r="5.5" fill="{EDGE}"/>' for n in range(3))
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" \
fill="{PLAIN}" role="img">
<title>A terminal in which selfroute demo runs: 30 questions, one a line, and a table of four strategies</title>
<style>
text {{ font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre; }}
.b {{ font-weight: bold; }}
.later {{ animation: appear 1ms both; }}
#rows {{ transform: translateY({-max(0, len(rows) - SHOWN) * ROW}px);
  animation: roll {_end(len(rows)):.1f}s step-end both; }}
@keyframes appear {{ from {{ opacity: 0; }} }}
@keyframes roll {{ {_rolling(len(rows))} }}
@media (prefers-reduced-motion: reduce) {{ .later, #rows {{ animation: none; }} }}
</style>
<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="9" fill="{BACK}" stroke="{EDGE}"/>
{dots}
<text x="{width / 2}" y="{BAR / 2 + 5}" text-anchor="middle" fill="{MUTED}">selfroute demo</text>
<svg x="{MARGIN}" y="{BAR + MARGIN / 2}" width="{width - 2 * MARGIN}" height="{SHOWN * ROW + MARGIN / 2}">
<g id="rows"><g transform="translate(0 15)">
{chr(10).join(lines)}
</g></g>
</svg>
</svg>
"""


def run_demo() -> bytes:
    """Return what the demo writes to a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "PYTHONUNBUFFERED": "1"}
    environment.pop("COLUMNS", None)
    with Popen(COMMAND, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        written = b"".join(_read(ours))
    os.close(ours)
    if process.returncode:
        sys.exit(f"The demo failed:\n{written.decode(errors='replace')}")
    return written


def _read(terminal: int) -> Iterator[bytes]:
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # its last writer has gone
            return
        if not piece:
            return
        yield piece


def screen_of(written: bytes) -> list[Mapping[int, Any]]:
    """Return the rows that stand on the screen at the end, each as its characters by column."""
    import pyte  # noqa: PLC0415 - only to record; the tests need none of it

    screen = pyte.Screen(COLUMNS, ROWS)
    pyte.Stream(screen).feed(written.decode().replace(*_DIM))
    used = [number for number, line in enumerate(screen.display) if line.strip()]
    return [dict(screen.buffer[number]) for number in range(used[-1] + 1)]


def _row(line: Mapping[int, Any]) -> str:
    """Return a row as text with colours; each run is as wide as it was, whatever the font."""
    cells = [line.get(column) for column in range(COLUMNS)]
    runs = groupby(enumerate(cells), key=lambda cell: _style(cell[1]))
    parts = []
    for style, run in runs:
        pairs = list(run)
        text = "".join(cell.data if cell else " " for _, cell in pairs)
        if text.strip():
            start = pairs[0][0] + len(text) - len(text.lstrip())
            text = text.strip()
            place = f'x="{start * CHARACTER:.4g}" textLength="{len(text) * CHARACTER:.4g}"'
            parts.append(f"<tspan {place}{style}>{escape(text, quote=False)}</tspan>")
    return "".join(parts)


def _style(cell: Any) -> str:
    if cell is None:
        return ""
    bold = ' class="b"' if cell.bold else ""
    colour = MUTED if cell.fg == _GREY else COLOURS.get(cell.fg, "")
    return bold + (f' fill="{colour}"' if colour else "")


def _delay(number: int) -> str:
    after = max(0, number - OPENING) * SECONDS
    return f' class="later" style="animation-delay:{after:.1f}s"' if after else ""


def _end(rows: int) -> float:
    return max(0, rows - 1 - OPENING) * SECONDS


def _rolling(rows: int) -> str:
    """Return the keyframes that keep the last row that has appeared in sight."""
    frames = []
    for number in range(SHOWN - 1, rows):
        at = 100 * (number - OPENING) * SECONDS / _end(rows)
        frames.append(f"{at:.2f}% {{ transform: translateY({-(number - SHOWN + 1) * ROW}px); }}")
    return " ".join(["0% { transform: none; }", *frames])
