"""Records of runs in other tools, after a run or while it trains.

A tracker learns what the run's folder holds: options, numbers of each round, the result. `fedloom export RUN --track NAME` and
`--track` of a training command do the same; the second follows the run in a thread of the command.
"""

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from common.errors import ConfigError
from common.options import Scalar
from common.privacy.accounts import parse_account
from common.registry import Registry
from deploy.cli.output import note
from deploy.federation.runs import runs_folder
from deploy.pages.view import first_line
from server.record.events import Finish, RoundEvent, Start
from server.record.folder import RunDirectory

POLL_SECONDS = 1.0
"""Seconds between two reads of a running run."""

SILENCE_SECONDS = 10.0
"""Seconds without a line after which a run is checked; an interrupted run writes no finish."""

LAST_SECONDS = 30.0
"""Seconds that a command waits for a tracker after the end of its run."""


@dataclass(frozen=True)
class TrackedRun:
    """Run that is recorded.

    Args:
        run: Name of the run.
        method: Name of its method.
        task: Name of its task.
        time: Time of its start, seconds since 1970.
        options: Its options by dotted key.
    """

    run: str
    method: str
    task: str
    time: float
    options: Mapping[str, Scalar]


class Tracker(Protocol):
    """Record of one run in another tool."""

    def round(self, number: int, time: float, values: Mapping[str, float]) -> None:
        """Record the numbers of a round by path (see `numbers`); `time` is its end, seconds since 1970."""

    def finish(self, status: str, values: Mapping[str, float], files: Sequence[Path]) -> None:
        """End the record.

        Args:
            status: `completed`, `failed`, or `interrupted` for a run without a result.
            values: Metrics of the final model, and `privacy/epsilon` under noise.
            files: Files of the run to store with it.
        """


@dataclass(frozen=True)
class TrackerKind:
    """Tool that records runs, under the entry point group `fedloom.trackers`.

    Args:
        name: Name in `--track NAME=TARGET`.
        target: Meaning of the target; the kind has none if it is empty.
        package: Module that it needs.
        install: Package that has the module.
        start: Function that starts the record of a run at a target; the target may be empty if `may_omit`.
        may_omit: True if the tool has a default target.
    """

    name: str
    target: str
    package: str
    install: str
    start: Callable[[TrackedRun, str], Tracker]
    may_omit: bool = False


TRACKERS: Registry[TrackerKind] = Registry(
    "tracker",
    "fedloom.trackers",
    TrackerKind,
    {
        "tensorboard": "deploy.pages.adapters:TENSORBOARD",
        "prometheus": "deploy.pages.adapters:PROMETHEUS",
        "mlflow": "deploy.pages.adapters:MLFLOW",
        "wandb": "deploy.pages.adapters:WANDB",
    },
)


def choose(words: Sequence[str]) -> list[tuple[TrackerKind, str]]:
    """Return the kinds and targets that are named as NAME or NAME=TARGET.

    Raises:
        ConfigError: A name is unknown, its package is not installed, or its target is missing.
    """
    chosen = []
    for word in words:
        name, _, target = word.partition("=")
        kind = TRACKERS[name]
        require(kind)
        if not (target or kind.may_omit):
            raise ConfigError(f"--track {name} needs {kind.target}: --track {name}={kind.target.split()[-1].upper()}")
        chosen.append((kind, target))
    return chosen


def require(kind: TrackerKind) -> None:
    """Check that a tracker's package is installed.

    Raises:
        ConfigError: It is not.
    """
    if find_spec(kind.package) is None:
        raise ConfigError(f"{kind.name} needs {kind.install}; install it with: pip install {kind.install}")


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


def rounds(
    folder: RunDirectory, *, follow: bool = False, is_over: Callable[[], bool] = lambda: False
) -> Iterator[RoundEvent]:
    """Yield each round of a run once.

    With `follow`, wait for further rounds until the run ends or is interrupted, or `is_over`.
    """
    seen, heard = 0, time.monotonic()
    while True:
        last = is_over()
        events = list(folder.events())
        yield from (event for event in events[seen:] if isinstance(event, RoundEvent))
        heard = heard if seen == len(events) else time.monotonic()
        seen = len(events)
        over = last or (bool(events) and isinstance(events[-1], Finish) and folder.result() is not None)
        if not follow or over or (time.monotonic() - heard > SILENCE_SECONDS and folder.is_idle()):
            return
        time.sleep(POLL_SECONDS)


def export(
    folder: RunDirectory,
    chosen: Sequence[tuple[TrackerKind, str]],
    *,
    follow: bool = False,
    is_over: Callable[[], bool] = lambda: False,
) -> int:
    """Record a run with each chosen tracker; return the number of rounds.

    Raises:
        ConfigError: The run has not started.
    """
    start = next((event for event in folder.events() if isinstance(event, Start)), None)
    if start is None:
        raise ConfigError(f"run '{folder.path.name}' has not started yet; export it later")
    options = {key: value for key, value in folder.config().items() if isinstance(value, Scalar)}
    about = TrackedRun(start.run, start.method, start.task, start.time, options)
    trackers = [kind.start(about, target) for kind, target in chosen]
    account, delta = parse_account(start.account) if start.account else None, float(options.get("privacy.delta", 0.0))
    exported, costs = 0, Counter[str]()
    for event in rounds(folder, follow=follow, is_over=is_over):
        values = numbers(event)
        costs.update({name: one.cost for name, one in event.clients.items() if one.cost})
        if account and costs:
            values["privacy/epsilon"] = account.claim(max(costs.values()), delta)
            values["privacy/limit"] = float(options["privacy.epsilon"])
        for tracker in trackers:
            tracker.round(event.round, event.time, values)
        exported += 1
    result = folder.result()
    final = dict(result.metrics) if result else {}
    if result and result.privacy.epsilon_spent_max is not None:
        final["privacy/epsilon"] = result.privacy.epsilon_spent_max
    files = [path for name in ("config.toml", "result.json") if (path := folder.path / name).exists()]
    for tracker in trackers:
        tracker.finish(result.status if result else "interrupted", final, files)
    return exported


@contextmanager
def tracked(run: str, words: Sequence[str] | None) -> Iterator[None]:
    """Record a run while the block trains it; a tracker that fails costs the run nothing and is named.

    Raises:
        ConfigError: A tracker is unknown or cannot be used; before the run starts.
    """
    chosen = choose(words or [])
    if not chosen:
        yield
        return
    folder, over = RunDirectory(runs_folder(), run), threading.Event()
    began = time.time()

    def is_started() -> bool:
        return any(isinstance(event, Start) and event.time >= began for event in folder.events())

    def record() -> None:
        while not is_started():
            if over.wait(POLL_SECONDS) and not is_started():
                return
        try:
            export(folder, chosen, follow=True, is_over=over.is_set)
        except Exception as error:  # of another package: any class
            names = ", ".join(kind.name for kind, _ in chosen)
            again = " ".join(f"--track {word}" for word in words or [])
            why = first_line(str(error)) or type(error).__name__
            note(f"not recorded by {names} ({why}); the run is not affected: fedloom export {run} {again}")

    thread = threading.Thread(target=record, name="tracker", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(LAST_SECONDS)
        if thread.is_alive():
            note(f"the tracker has not answered for {LAST_SECONDS:g} s; fedloom export {run} records the run again")
