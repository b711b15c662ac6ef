"""The pictures of README and home page are those that their scripts draw, and need nothing from elsewhere."""

import re
import runpy
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
FILES = sorted(PICTURES.glob("*.svg"))
SVG = "{http://www.w3.org/2000/svg}"


def test_each_picture_is_the_one_that_is_drawn_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(PICTURES)
    drawn = runpy.run_path(str(PICTURES / "draw.py"))["draw"]()
    assert {*drawn} == {path.name for path in FILES}
    different = [name for name, picture in drawn.items() if (PICTURES / name).read_text("utf-8") != picture]
    assert not different, "run: python docs/pictures/draw.py"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_picture_says_what_it_shows_is_small_and_asks_for_nothing(path: Path) -> None:
    content = path.read_text("utf-8")
    assert len(content) < 150_000
    title = ET.fromstring(content).find(f"{SVG}title")  # noqa: S314 - our own file
    assert title is not None
    assert len(title.text or "") > 50
    assert re.findall(r"https?://[^\"]+", content) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"<script|<image|@import|@font-face|@keyframes|href|url\((?!#)", content)
