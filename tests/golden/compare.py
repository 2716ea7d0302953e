"""Compare trained models and configuration texts of a commit with those of this tree, on this machine.

`python tests/golden/compare.py BEFORE` checks the commit BEFORE out into a temporary folder and runs `fedloom simulate
--together 1` in both trees for every task, method and model, without noise and with seeded noise. Bits depend on the
processor and on the build of torch, so no hash is stored in the repository. Exit status 1 means that something differs.
`--within 1e-6` accepts numbers of models and results that differ by less, relative to the largest number of their array.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

ROOT = Path(__file__).parents[2]
MEASURED = ("metrics", "clients", "bytes_down", "bytes_up")
"""Entries of result.json that a run measures."""


def collect(tree: Path, only: str, folder: Path) -> dict[str, str]:
    """Return the outcome of every run in `tree`: hashes of its model and files, or its refusal; runs stay in `folder`."""
    stored = folder / f"{only or 'all'}.json"
    if not stored.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, str(Path(__file__).with_name("runs.py")), str(tree), only]
        environment = {**os.environ, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
        stored.write_bytes(
            subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE).stdout
        )
    return dict(json.loads(stored.read_text("utf-8")))


def numbers(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the path and the value of every leaf of a JSON value."""
    if isinstance(value, dict | list):
        for name, child in value.items() if isinstance(value, dict) else enumerate(value):
            yield from numbers(child, f"{key}/{name}")
    else:
        yield key, value


def difference(before: Path, after: Path) -> float:
    """Return the largest difference of two runs, relative to the largest number of an array; infinity for another shape."""
    models = [load_file(run / "model.safetensors") for run in (before, after)]
    results = [json.loads((run / "result.json").read_text("utf-8")) for run in (before, after)]
    measured = [dict(numbers({key: result[key] for key in MEASURED})) for result in results]
    pairs = [
        [{name: np.asarray(value) for name, value in side.items()} for side in sides] for sides in (models, measured)
    ]
    worst = 0.0
    for old, new in pairs:
        if old.keys() != new.keys() or any(old[name].shape != new[name].shape for name in old):
            return float("inf")
        for name in old:
            if np.issubdtype(old[name].dtype, np.number) and np.issubdtype(new[name].dtype, np.number):
                scale = np.abs(old[name]).max(initial=0.0) or 1.0
                worst = max(worst, float(np.abs(old[name].astype(np.float64) - new[name]).max(initial=0.0) / scale))
            elif not np.array_equal(old[name], new[name]):
                return float("inf")
    return worst


def main() -> None:
    """Print every run whose outcome differs, and how many are equal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", help="commit to compare with")
    parser.add_argument("--only", default="", help="run only combinations whose name contains this text")
    parser.add_argument("--cache", type=Path, help="folder in which runs of BEFORE stay")
    parser.add_argument(
        "--within", type=float, default=0.0, help="relative difference that counts as equal (default: bits)"
    )
    arguments = parser.parse_args()
    commit = subprocess.check_output(["git", "rev-parse", arguments.before], cwd=ROOT, text=True).strip()
    with tempfile.TemporaryDirectory() as temporary:
        old_runs, new_runs = (arguments.cache or Path(temporary)) / commit, Path(temporary) / "now"
        tree = Path(temporary) / "before"
        subprocess.run(
            ["git", "worktree", "add", "--detach", str(tree), commit], cwd=ROOT, check=True, capture_output=True
        )
        try:
            before = collect(tree, arguments.only, old_runs)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)
        after = collect(ROOT, arguments.only, new_runs)
        different = []
        for name in sorted(before.keys() | after.keys()):
            outcomes = [side.get(name, "absent") for side in (before, after)]
            if outcomes[0] == outcomes[1]:
                continue
            trained = not any(outcome.startswith(("refused", "absent")) for outcome in outcomes)
            apart = difference(old_runs / "runs" / name, new_runs / "runs" / name) if trained else float("inf")
            if apart > arguments.within:
                different.append(name)
                print(f"{name}: {outcomes[0]} -> {outcomes[1]}, largest relative difference {apart:.2g}")
    trained_runs = sum(not outcome.startswith("refused") for outcome in after.values())
    equal = len(after) - len(different)
    print(f"{equal} of {len(after)} outcomes equal; {trained_runs} trained, the rest refused alike")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
