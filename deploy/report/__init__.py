"""report.html, and the words that every surface uses for a run's numbers."""

from pathlib import Path


def render(runs: list[Path], out: Path) -> Path:
    """Write a self-contained page about one run, or comparing several; `runs` are folders runs/<id>.

    Raises:
        ConfigError: A folder holds no run.
    """
    from deploy.report.page import page  # matplotlib costs half a second that other commands need not pay

    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page(runs), "utf-8")
    return out
