"""Rendering of report.html; matplotlib is imported when a page is rendered."""

from pathlib import Path


def render(runs: list[Path], out: Path) -> Path:
    """Write a self-contained page on one run or a comparison of several; return its path.

    Args:
        runs: Run folders runs/<id>.
        out: Path of the page.

    Raises:
        ConfigError: A folder is not a run.
    """
    from deploy.report.page import page  # matplotlib takes half a second, which other commands need not wait for

    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page(runs), "utf-8")
    return out
