"""A run's rounds for tools that people watch other things with: TensorBoard, and Prometheus by a node exporter's text files.

Both are made of `metrics.jsonl`, which is all there is to a run; neither tool is needed to read one.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from common.errors import ConfigError
from server.artifacts import RunDirectory
from server.events import Finish, Round, Start

LOOK_EVERY = 1.0
"""Seconds between two looks at a run that goes on."""

SILENCE = 10.0
"""Seconds without a line after which a run is looked at: whoever was interrupted writes none any more."""

EXTRA = "install it with: pip install tensorboardX prometheus-client"


def numbers(line: Round) -> dict[str, float]:
    """All numbers that a round told, by a path: `train/loss`, `test/auc`, `server/arm`, `clients/asked`, `bytes/up`."""
    of = line.split or "test"
    clients = {
        "answered": line.answered,
        "asked": line.asked,
        "missing": len(line.missing),
        "refused": len(line.refused),
    }
    found = {
        "train/loss": line.loss,
        **{f"{of}/{name}": value for name, value in line.metrics.items()},
        **{f"server/{name}": value for name, value in line.server.items()},
        **{f"clients/{name}": float(number) for name, number in clients.items()},
        "bytes/down": float(line.bytes_down),
        "bytes/up": float(line.bytes_up),
        "seconds": line.seconds,
    }
    return {path: value for path, value in found.items() if math.isfinite(value)}


def rounds(folder: RunDirectory, *, follow: bool = False) -> Iterator[Round]:
    """A run's rounds, each once; with `follow`, those to come too, until the run is over or nobody works on it any more."""
    told, heard = 0, time.monotonic()
    while True:
        events = list(folder.events())
        yield from (event for event in events[told:] if isinstance(event, Round))
        heard = heard if told == len(events) else time.monotonic()
        told = len(events)
        over = bool(events) and isinstance(events[-1], Finish) and folder.result() is not None
        if not follow or over or (time.monotonic() - heard > SILENCE and folder.is_idle()):
            return
        time.sleep(LOOK_EVERY)


class TensorBoard:
    """Event files below `folder/<run>`, a scalar for each number of a round.

    Raises:
        ConfigError: tensorboardX is not installed.
    """

    def __init__(self, folder: Path, run: str) -> None:
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            raise ConfigError(f"TensorBoard's format needs tensorboardX; {EXTRA}") from None
        self._writer = SummaryWriter(str(folder / run), purge_step=0)  # what was handed on before is replaced

    def add(self, line: Round) -> None:
        """Write a round."""
        for path, value in numbers(line).items():
            self._writer.add_scalar(path, value, line.round, line.time)
        self._writer.flush()

    def close(self) -> None:
        """Nothing follows."""
        self._writer.close()


class Prometheus:
    """A text file that holds the newest round of each run it was told of, replaced as a whole whenever one comes.

    Raises:
        ConfigError: prometheus-client is not installed.
    """

    def __init__(self, path: Path) -> None:
        try:
            from prometheus_client import CollectorRegistry, Gauge
        except ImportError:
            raise ConfigError(f"Prometheus' format needs prometheus-client; {EXTRA}") from None
        self._path, self._registry, labels = path, CollectorRegistry(), ("run", "method", "task")
        self._told: dict[str, set[str]] = {}
        self._round = Gauge("fedloom_round", "Rounds that are done.", labels, registry=self._registry)
        self._number = Gauge(
            "fedloom_round_number", "A number of the newest round.", (*labels, "name"), registry=self._registry
        )

    def add(self, about: Mapping[str, str], line: Round) -> None:
        """Write a round of the run that `about` names with its method and task."""
        from prometheus_client import write_to_textfile

        self._round.labels(**about).set(line.round)
        found = numbers(line)
        for name in self._told.get(about["run"], set()) - found.keys():  # of a round before
            self._number.remove(*about.values(), name)
        for name, value in found.items():
            self._number.labels(**about, name=name).set(value)
        self._told[about["run"]] = set(found)
        write_to_textfile(str(self._path), self._registry)


def named(folder: RunDirectory) -> dict[str, str]:
    """A run's labels.

    Raises:
        ConfigError: It has not begun.
    """
    for event in folder.events():
        if isinstance(event, Start):
            return {"run": event.run, "method": event.method, "task": event.task}
    raise ConfigError(f"run '{folder.path.name}' has not begun yet")


def export(folders: Sequence[RunDirectory], tensorboard: Path | None, prometheus: Path | None, *, follow: bool) -> int:
    """Hand every round of these runs on, and return how many there were; one run after the other.

    Raises:
        ConfigError: What a format needs is not installed, or a run has not begun.
    """
    text, told = Prometheus(prometheus) if prometheus else None, 0
    for folder in folders:
        about = named(folder)
        board = TensorBoard(tensorboard, folder.path.name) if tensorboard else None
        for line in rounds(folder, follow=follow):
            told += 1
            if board:
                board.add(line)
            if text:
                text.add(about, line)
        if board:
            board.close()
    return told
