"""Paired differences between runs, client by client, and the reasons why two runs are not comparable."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

from common.metrics.spec import MetricSpec
from common.options import leaves
from deploy.report.launch_record import origin_of
from server.artifacts import RunDirectory
from server.events import Start
from server.result import Result

MIN_PAIRS = 5
"""Number of clients below which a difference is too uncertain to be called one."""


@dataclass(frozen=True)
class Paired:
    """Difference of a metric, second run minus first, over the clients that have it in both.

    Args:
        mean: Mean over clients.
        se: Standard error of the mean; NaN for fewer than two clients.
        clients: Number of clients.
    """

    mean: float
    se: float
    clients: int

    @property
    def is_clear(self) -> bool:
        """True if the mean is at least two standard errors from 0, over enough clients."""
        return self.clients >= MIN_PAIRS and abs(self.mean) >= 2 * self.se and self.mean != 0


def pair(m: MetricSpec, first: Result, second: Result) -> Paired | None:
    """Return the paired difference of a metric; None if no client has it in both runs."""
    pairs = [
        (first.clients[name].metrics.get(m.key, math.nan), second.clients[name].metrics.get(m.key, math.nan))
        for name in first.clients.keys() & second.clients.keys()
    ]
    differences = [after - before for before, after in pairs if math.isfinite(after - before)]
    if not differences:
        return None
    n = len(differences)
    return Paired(mean(differences), stdev(differences) / math.sqrt(n) if n > 1 else math.nan, n)


def find_mismatches(runs: Sequence[Path]) -> list[str]:
    """Return what differs between runs so that their metrics are not comparable: task, data or split."""
    traits = [_traits(path) for path in runs]
    return [name for name in traits[0] if len({one[name] for one in traits}) > 1]


def _traits(path: Path) -> dict[str, object]:
    """Return what must be equal in comparable runs: task, split, and a fingerprint of the data.

    A run of an earlier release has no fingerprint. Its vocabulary and each client's number of records stand in.
    """
    folder = RunDirectory(path.parent, path.name)
    config, result = dict(leaves(folder.config(), "")), folder.result()
    start = next((event for event in folder.events() if isinstance(event, Start)), None)
    task = config.get("task")
    shares = tuple(config.get(f"tasks.{task}.{key}") for key in ("test-share", "validation-share"))
    if start and start.fingerprint:
        return {"task": task, "data": start.fingerprint, "split": (shares, start.split)}
    origin = origin_of(path)
    examples = {name: client.examples for name, client in result.clients.items()} if result else {}
    data = folder.catalogue(), origin.data if origin else "", tuple(sorted(examples.items()))
    return {"task": task, "data": data, "split": (shares, config.get("seed"))}
