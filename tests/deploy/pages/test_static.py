"""Files of the live page: vendored bytes, own script, colors."""

import hashlib
import re
from pathlib import Path

import pytest

from deploy.pages import live as app

STATIC = app.HERE / "static"
PAGE, SCRIPT, STYLE = app.HERE / "live.html", STATIC / "page.js", STATIC / "page.css"

VENDORED = {
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
}
TEXT_COLORS = ("ink", "soft", "good", "warn", "bad", "accent", *(f"series-{k}" for k in range(1, 9)))
BACKGROUNDS = ("paper", "wash")


@pytest.mark.parametrize("name", VENDORED)
def test_a_vendored_file_has_its_bytes(name: str) -> None:
    assert hashlib.sha256((STATIC / name).read_bytes()).hexdigest() == VENDORED[name]


def test_the_license_of_the_vendored_files_is_there() -> None:
    assert "MIT License" in (STATIC / "LICENSE.uPlot").read_text()


def test_the_page_weighs_less_than_150_kilobytes() -> None:
    assert sum(path.stat().st_size for path in (PAGE, *STATIC.iterdir())) < 150_000


def test_the_own_script_is_short() -> None:
    assert len(SCRIPT.read_text().splitlines()) <= 400


@pytest.mark.parametrize("path", [PAGE, SCRIPT])
def test_text_enters_the_document_as_text_only(path: Path) -> None:
    found = re.findall(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|\bFunction\(|\bon[a-z]+=", path.read_text()
    )
    assert found == []


def test_the_page_names_no_other_host() -> None:
    for path in (PAGE, SCRIPT, STYLE):
        assert not re.findall(r"https?:|//[a-z]|url\(|@import", path.read_text().replace("// ", ""))


def luminance(color: str) -> float:
    """Return the relative luminance of `#rrggbb` (WCAG 2.2)."""
    parts = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, two: str) -> float:
    """Return the contrast ratio of two colors."""
    low, high = sorted((luminance(one), luminance(two)))
    return (high + 0.05) / (low + 0.05)


def schemes() -> dict[str, dict[str, str]]:
    """Return scheme -> variable -> color."""
    light, dark = re.findall(r":root \{(.*?)\}", STYLE.read_text(), re.DOTALL)[:2]
    return {
        name: dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})", text))
        for name, text in (("light", light), ("dark", dark))
    }


def test_the_formula_of_contrast_gives_21_for_black_on_white() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("color", TEXT_COLORS)
def test_every_color_of_text_has_contrast(scheme: str, color: str) -> None:
    colors = schemes()[scheme]
    assert min(contrast(colors[color], colors[background]) for background in BACKGROUNDS) >= 4.5
