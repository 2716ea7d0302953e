"""Make the pages of tutorials, and of notebooks that have one: scripts with the output of their cells.

`python docs/make_tutorials.py [NAME ...]` runs the scripts in a temporary folder and writes the pages beside them.
"""

import contextlib
import io
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import jupytext

DOCS = Path(__file__).resolve().parent
NOTEBOOKS = [script for script in DOCS.glob("notebooks/*.py") if script.with_suffix(".md").exists()]
SCRIPTS = {script.stem: script for script in sorted([*DOCS.glob("tutorials/*.py"), *NOTEBOOKS])}


def sections(script: Path, *, execute: bool) -> Iterator[str]:
    """Yield the Markdown of a script's cells; with `execute` also what they print."""
    scope: dict[str, object] = {}
    for cell in jupytext.read(script).cells:
        if cell.cell_type == "markdown":
            yield cell.source
            continue
        yield f"```python\n{cell.source}\n```"
        if execute:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(cell.source, script, "exec"), scope)
            if printed.getvalue().strip():
                yield f"```text\n{printed.getvalue().rstrip()}\n```"


def make(name: str) -> Path:
    """Run a script and write its page; return the page's path."""
    script = SCRIPTS[name]
    page = script.with_suffix(".md")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        os.environ["FEDLOOM_RUNS"] = folder
        page.write_text("\n\n".join(sections(script, execute=True)) + "\n", "utf-8")
    return page


if __name__ == "__main__":
    for tutorial in sys.argv[1:] or SCRIPTS:
        print(make(tutorial))
