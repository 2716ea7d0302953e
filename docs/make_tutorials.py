"""Make the tutorial pages: each script of docs/tutorials with the output of its cells.

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

TUTORIALS = Path(__file__).resolve().parent / "tutorials"


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
    page = TUTORIALS / f"{name}.md"
    script = TUTORIALS / f"{name}.py"
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        os.environ["FEDLOOM_RUNS"] = folder
        page.write_text("\n\n".join(sections(script, execute=True)) + "\n", "utf-8")
    return page


if __name__ == "__main__":
    for tutorial in sys.argv[1:] or sorted(path.stem for path in TUTORIALS.glob("*.py")):
        print(make(tutorial))
