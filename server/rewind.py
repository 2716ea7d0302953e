"""Return of a run to an earlier round, on request."""

import json

from common.errors import ConfigError
from common.files import write_atomically
from server.artifacts import RunDirectory
from server.model_choice import BEST_MODEL


def go_back(folder: RunDirectory, number: int) -> None:
    """Remove all that followed a round: checkpoints, lines, decision, result and best model.

    Raises:
        ConfigError: The run has no checkpoint of that round.
    """
    stored = folder.checkpoints.rounds()
    if number not in stored:
        listed = ", ".join(map(str, stored)) or "none"
        raise ConfigError(
            f"run '{folder.path.name}' has no checkpoint of round {number}; choose --round from: {listed}"
        )
    folder.checkpoints.load(number)  # a damaged one raises before anything is removed
    lines = folder.path / "metrics.jsonl"
    if lines.exists():
        kept = [line for line in lines.read_bytes().splitlines(keepends=True) if not _is_later(line, number)]
        write_atomically(lines, b"".join(kept))
    best = folder.path / BEST_MODEL
    if best.exists() and int(folder.load_model(BEST_MODEL)[1].get("round", 0)) > number:
        best.unlink()
    for name in ("decision.json", "result.json"):
        (folder.path / name).unlink(missing_ok=True)
    folder.checkpoints.discard_after(number)


def _is_later(line: bytes, number: int) -> bool:
    """Return True for the line of a later round, and for the end of the run."""
    try:
        event = json.loads(line)
    except ValueError:  # torn
        return False
    return bool(event.get("event") == "finish" or event.get("round", 0) > number)
