"""Checkpoints of a run: the state from which it resumes, one file per round."""

import json
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common.arrays import Arrays, add_prefix, group, sha256
from common.errors import StateError
from common.files import write_atomically
from server import tensor_file

RETAINED = 2  # newest checkpoints on disk: if one is torn, the other is whole
SPACED = 8  # further checkpoints at most, evenly spaced, to which `--round` can go back
LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Checkpoint:
    """State of a strategy after `round`, sufficient to resume.

    Args:
        round: Number of completed rounds.
        seed: Seed of the run; a checkpoint of another seed belongs to another run.
        groups: Named groups of arrays, e.g. `model`, `controls`, `moments`.
        state: JSON values of everything else.
    """

    round: int
    seed: int
    groups: dict[str, Arrays]
    state: dict[str, Any] = field(default_factory=dict)


class Checkpoints:
    """Folder of a run's checkpoints.

    Args:
        path: The folder; it must exist before the first `save`.
        clients: Folder of snapshots of simulated clients, one a round; they need the checkpoint of their round.
    """

    def __init__(self, path: Path, clients: Path) -> None:
        self.path, self._clients = path, clients

    def save(self, checkpoint: Checkpoint, best_round: int) -> None:
        """Write the checkpoint; keep the newest two, of `best_round` and snapshots, and evenly spaced ones."""
        header = {"round": checkpoint.round, "seed": checkpoint.seed, "state": checkpoint.state}
        header |= {"groups": list(checkpoint.groups), "model_sha256": sha256(checkpoint.groups.get("model", {}))}
        flat = {name: a for key, arrays in checkpoint.groups.items() for name, a in add_prefix(key, arrays).items()}
        about = {key: json.dumps(value) for key, value in header.items()}
        write_atomically(self._file(checkpoint.round), tensor_file.dump(flat, about))
        snapshots = (int(path.name) for path in self._clients.glob("*") if path.name.isdecimal())
        kept = {self._file(number) for number in (best_round, *snapshots, *spaced_rounds(checkpoint.round))}
        for path in set(self._files()[RETAINED:]) - kept:
            path.unlink()

    def discard_after(self, round_: int) -> None:
        """Delete the checkpoints of later rounds."""
        for number in self.rounds():
            if number > round_:
                self._file(number).unlink()

    def load(self, round_: int) -> Checkpoint:
        """Return the checkpoint of one round.

        Raises:
            StateError: The checkpoint is missing or damaged.
        """
        flat, about = tensor_file.load(self._file(round_))
        header = {key: json.loads(value) for key, value in about.items()}
        groups = {key: group(key, flat) for key in header["groups"]}
        return Checkpoint(header["round"], header["seed"], groups, header["state"])

    def load_latest(self) -> Checkpoint | None:
        """Return the newest readable checkpoint; None if there is no checkpoint.

        Raises:
            StateError: All checkpoints are damaged.
        """
        paths = self._files()
        for path in paths:
            try:
                return self.load(int(path.stem.removeprefix("round-")))
            except StateError as error:
                LOG.warning("%s; trying the checkpoint before it", error)
        if paths:
            raise StateError(f"{self.path}: no checkpoint is readable; start a new run without --resume")
        return None

    def rounds(self) -> list[int]:
        """Return the numbers of the stored rounds, ascending."""
        return sorted(int(path.stem.removeprefix("round-")) for path in self._files())

    def _file(self, round_: int) -> Path:
        return self.path / f"round-{round_:06d}.safetensors"

    def _files(self) -> list[Path]:
        return sorted(self.path.glob("round-*.safetensors"), reverse=True)


def spaced_rounds(newest: int) -> range:
    """Return at most `SPACED` rounds up to the newest, multiples of the smallest sufficient power of two."""
    step = 1
    while newest // step > SPACED:
        step *= 2
    return range(step, newest + 1, step)
