"""Return of a run to an earlier round: on request, or to that of its clients' state."""

import json
from pathlib import Path

from common.errors import ConfigError
from common.files import write_atomically
from server.record.folder import EVENTS_FILE, RunDirectory
from server.record.model_choice import BEST_MODEL

REPLAYED = f"{EVENTS_FILE}.replayed"
"""File with the lines of rounds that a resumed run computed again."""


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
    _cut_lines(folder, number)
    (folder.path / "decision.json").unlink(missing_ok=True)
    _remove_later(folder, number)


def replay_after(folder: RunDirectory, number: int) -> None:
    """Prepare to compute the rounds after this one again; their lines go to `REPLAYED`.

    The decision on the next round stays: clients may have been charged for it.
    """
    _cut_lines(folder, number, folder.path / REPLAYED)
    if (decision := folder.decision()) and json.loads(decision)["number"] > number + 1:
        (folder.path / "decision.json").unlink()
    _remove_later(folder, number)


def _cut_lines(folder: RunDirectory, number: int, archive: Path | None = None) -> None:
    """Remove the lines that followed a round, or append them to an archive."""
    path = folder.path / EVENTS_FILE
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    later = [line for line in lines if _is_later(line, number)]
    if later and archive:
        with archive.open("ab") as file:
            file.writelines(later)
    if later:
        write_atomically(path, b"".join(line for line in lines if not _is_later(line, number)))


def _remove_later(folder: RunDirectory, number: int) -> None:
    best = folder.path / BEST_MODEL
    if best.exists() and int(folder.load_model(BEST_MODEL)[1].get("round", 0)) > number:
        best.unlink()
    (folder.path / "result.json").unlink(missing_ok=True)
    folder.checkpoints.discard_after(number)


def _is_later(line: bytes, number: int) -> bool:
    """Return True for the line of a later round, and for the end of the run."""
    try:
        event = json.loads(line)
    except ValueError:  # torn
        return False
    return bool(event.get("event") == "finish" or event.get("round", 0) > number)
