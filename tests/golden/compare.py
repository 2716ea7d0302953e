"""Compare trained models and configuration texts of a commit with those of this tree, on this machine.

`python tests/golden/compare.py BEFORE` checks the commit BEFORE out into a temporary folder and runs `fedloom simulate
--together 1` in both trees for every task, method and model, without noise and with seeded noise. Bits depend on the
processor and on the build of torch, so no hash is stored in the repository. Exit status 1 means that something differs.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def collect(tree: Path, only: str, cache: Path | None = None) -> dict[str, str]:
    """Return the outcome of every run in `tree`: hashes of its model and files, or its refusal."""
    if cache and cache.is_file():
        return dict(json.loads(cache.read_text()))
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(Path(__file__).with_name("runs.py")), str(tree), only]
        environment = {**os.environ, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
        text = subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE).stdout
    if cache:
        cache.write_bytes(text)
    return dict(json.loads(text))


def main() -> None:
    """Print every run whose outcome differs, and how many are equal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", help="commit to compare with")
    parser.add_argument("--only", default="", help="run only combinations whose name contains this text")
    parser.add_argument("--cache", type=Path, help="folder of stored outcomes of BEFORE")
    arguments = parser.parse_args()
    commit = subprocess.check_output(["git", "rev-parse", arguments.before], cwd=ROOT, text=True).strip()
    cache = arguments.cache / f"{commit}-{arguments.only or 'all'}.json" if arguments.cache else None
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "before"
        subprocess.run(
            ["git", "worktree", "add", "--detach", str(tree), commit], cwd=ROOT, check=True, capture_output=True
        )
        try:
            before = collect(tree, arguments.only, cache)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)
    after = collect(ROOT, arguments.only)
    different = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    for name in different:
        print(f"{name}: {before.get(name)} -> {after.get(name)}")
    trained = sum(not outcome.startswith("refused") for outcome in after.values())
    print(f"{len(after) - len(different)} of {len(after)} outcomes equal; {trained} trained, the rest refused alike")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
