"""Export of a run's rounds: TensorBoard, and Prometheus through text files of a node exporter.

Both read `metrics.jsonl` only; neither tool is needed to read a run.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from common.errors import ConfigError
from server.record.events import Finish, RoundEvent, Start
from server.record.folder import RunDirectory

if TYPE_CHECKING:
    from tensorboardX import SummaryWriter

POLL_SECONDS = 1.0
"""Seconds between two reads of a running run."""

SILENCE_SECONDS = 10.0
"""Seconds without a line after which a run is checked; an interrupted run writes no finish."""

EXTRA = "install it with: pip install tensorboardX prometheus-client"


def numbers(event: RoundEvent) -> dict[str, float]:
    """Return all numbers of a round by path.

    Paths are such as `train/loss`, `test/auc`, `server/arm`, `clients/asked`, `bytes/up`.
    """
    of = event.split or "test"
    clients = {
        "answered": event.answered,
        "asked": event.asked,
        "missing": len(event.missing),
        "refused": len(event.refused),
    }
    values = {
        "train/loss": event.loss,
        **{f"{of}/{name}": value for name, value in event.metrics.items()},
        **{f"server/{name}": value for name, value in event.server.items()},
        **{f"clients/{name}": float(number) for name, number in clients.items()},
        "bytes/down": float(event.bytes_down),
        "bytes/up": float(event.bytes_up),
        "seconds": event.seconds,
    }
    return {path: value for path, value in values.items() if math.isfinite(value)}


def rounds(folder: RunDirectory, *, follow: bool = False) -> Iterator[RoundEvent]:
    """Yield each round of a run once.

    With `follow`, wait for further rounds until the run ends or is interrupted.
    """
    seen, heard = 0, time.monotonic()
    while True:
        events = list(folder.events())
        yield from (event for event in events[seen:] if isinstance(event, RoundEvent))
        heard = heard if seen == len(events) else time.monotonic()
        seen = len(events)
        over = bool(events) and isinstance(events[-1], Finish) and folder.result() is not None
        if not follow or over or (time.monotonic() - heard > SILENCE_SECONDS and folder.is_idle()):
            return
        time.sleep(POLL_SECONDS)


class Prometheus:
    """Text file with the newest round of each added run, replaced as a whole at each update.

    Raises:
        ConfigError: prometheus-client is not installed.
    """

    def __init__(self, path: Path) -> None:
        try:
            from prometheus_client import CollectorRegistry, Gauge
        except ImportError:
            raise ConfigError(f"the Prometheus format needs prometheus-client; {EXTRA}") from None
        self._path, self._registry, labels = path, CollectorRegistry(), ("run", "method", "task")
        self._exported: dict[str, set[str]] = {}
        self._round = Gauge("fedloom_round", "Number of completed rounds.", labels, registry=self._registry)
        self._number = Gauge(
            "fedloom_round_number", "Number of the newest round.", (*labels, "name"), registry=self._registry
        )

    def add(self, about: Mapping[str, str], event: RoundEvent) -> None:
        """Write a round of the run that `about` identifies by name, method and task."""
        from prometheus_client import write_to_textfile

        self._round.labels(**about).set(event.round)
        current = numbers(event)
        for name in self._exported.get(about["run"], set()) - current.keys():  # of an earlier round
            self._number.remove(*about.values(), name)
        for name, value in current.items():
            self._number.labels(**about, name=name).set(value)
        self._exported[about["run"]] = set(current)
        write_to_textfile(str(self._path), self._registry)


def open_tensorboard(folder: Path) -> "SummaryWriter":
    """Return a writer of event files in `folder`, in place of those of an earlier export.

    Raises:
        ConfigError: tensorboardX is not installed.
    """
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        raise ConfigError(f"the TensorBoard format needs tensorboardX; {EXTRA}") from None
    return SummaryWriter(str(folder), purge_step=0)


def export(folders: Sequence[RunDirectory], tensorboard: Path | None, prometheus: Path | None, *, follow: bool) -> int:
    """Export every round of these runs, one run after the other; return the number of rounds.

    TensorBoard gets a folder for each run, with one scalar for each number of a round.

    Raises:
        ConfigError: A required package is not installed, or a run has not started.
    """
    text, exported = Prometheus(prometheus) if prometheus else None, 0
    for folder in folders:
        run = folder.path.name
        start = next((event for event in folder.events() if isinstance(event, Start)), None)
        if start is None:
            raise ConfigError(f"run '{run}' has not started yet; export it later")
        board = open_tensorboard(tensorboard / run) if tensorboard else None
        for event in rounds(folder, follow=follow):
            exported += 1
            if board:
                for path, value in numbers(event).items():
                    board.add_scalar(path, value, event.round, event.time)
                board.flush()
            if text:
                text.add({"run": start.run, "method": start.method, "task": start.task}, event)
        if board:
            board.close()
    return exported
