"""A run as the report sees it: its folder, read."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from common.metrics.spec import MetricSpec
from common.options import leaves
from deploy.report.launch_record import Origin, origin_of
from deploy.report.metric_table import EXAMPLES, is_error
from server.artifacts import RunDirectory
from server.events import Finish, Metrics, Result, Round, Start

Status = Literal["completed", "failed", "unfinished"]


@dataclass(frozen=True)
class RunRecord:
    """What is known of a run, finished or not.

    Args:
        run: Its id.
        config: Dotted key -> value.
        rounds: In order; where a resumed run did a round again, the later one.
        result: None while the run goes on, or where it was killed.
        origin: How it was started; None if not on this machine.
    """

    run: str
    config: dict[str, Any]
    rounds: tuple[Round, ...]
    status: Status
    reason: str
    started: float | None
    result: Result | None
    origin: Origin | None = None

    @property
    def final(self) -> Metrics:
        """Metrics of the final model, or of the last evaluated round so far."""
        if self.result:
            return self.result.metrics
        return next((r.metrics for r in reversed(self.rounds) if r.metrics), {})

    @property
    def title(self) -> str:
        """`fedrule on rules`."""
        return f"{self.config.get('method', '?')} on {self.task}"

    @property
    def task(self) -> str:
        """What is learnt."""
        return str(self.config.get("task", "?"))

    def called(self, client: str) -> str:
        """The markets that a client has, where they were dealt on this machine; else its own name."""
        return self.origin.markets.get(client, client) if self.origin else client

    def series(self, key: str) -> tuple[list[int], list[float]]:
        """Rounds and values of an evaluation metric; without the last round's, where it was measured on other data."""
        found = [(r.round, r.metrics[key]) for r in self.rounds if key in r.metrics]
        found = found[:-1] if self.tested and len(found) > 1 else found
        return [x for x, _ in found], [y for _, y in found]

    @property
    def noisy(self) -> bool:
        """Whether noise covers what clients send; it hides how many examples they have, and their training loss."""
        return str(self.config.get("privacy.unit", "none")) != "none"

    @property
    def drawn_anew(self) -> bool:
        """Whether clients draw noise, if only on counts: the same command then ends in another model."""
        return self.noisy or bool(self.result and self.result.privacy.counts)

    @property
    def tells_error(self) -> bool:
        """Whether rounds have a training loss that says how wrong the clients are."""
        return not self.noisy and is_error(self.task, str(self.config.get("model")))

    @property
    def validated(self) -> bool:
        """Whether rounds were measured on validation data."""
        return bool(self.config.get(f"tasks.{self.task}.validation-share", 0))

    @property
    def tested(self) -> bool:
        """Whether the last round was measured on test data, and those before it on validation data."""
        return bool(self.validated and self.rounds and self.rounds[-1].round == self.config.get("rounds"))

    @property
    def clusters(self) -> dict[str, list[tuple[int, int]]]:
        """Client -> (round, the cluster it was in), in order; empty for methods with one model."""
        found: dict[str, list[tuple[int, int]]] = {}
        for r in self.rounds:
            for client, cluster in r.clusters.items():
                found.setdefault(client, []).append((r.round, cluster))
        return found


def read(path: Path) -> RunRecord:
    """Read the folder runs/<id>.

    Raises:
        ConfigError: There is no run.
        DataError: Its result.json is not readable.
    """
    folder = RunDirectory(path.parent, path.name)
    config, result = dict(leaves(folder.config(), "")), folder.result()
    events = list(folder.events())
    rounds = {event.round: event for event in events if isinstance(event, Round)}
    starts = [event.time for event in events if isinstance(event, Start)]
    end = events[-1] if events and isinstance(events[-1], Finish) else None
    outcome = result or end
    return RunRecord(
        run=path.name,
        config=config,
        rounds=tuple(rounds[r] for r in sorted(rounds)),
        status=outcome.status if outcome else "unfinished",
        reason=outcome.reason if outcome else "",
        started=starts[0] if starts else None,
        result=result,
        origin=origin_of(path),
    )


def labels(histories: Sequence[RunRecord]) -> list[str]:
    """The shortest names that tell the runs apart."""
    methods = [str(h.config.get("method", "?")) for h in histories]
    seeded = [f"{method}, seed {h.config.get('seed', '?')}" for method, h in zip(methods, histories, strict=True)]
    names = ([*methods], [*seeded], [h.run for h in histories])
    return next((found for found in names if len(set(found)) == len(found)), names[-1])


def absences(rounds: tuple[Round, ...]) -> list[tuple[str, str, str]]:
    """(client, why, rounds) for all that did not count, consecutive rounds as ranges: `12–15, 20`."""
    when: dict[tuple[str, str], list[int]] = {}
    for r in rounds:
        for name in r.missing:
            when.setdefault((name, "did not answer"), []).append(r.round)
        for name, reason in r.refused.items():
            when.setdefault((name, reason), []).append(r.round)
    return [(name, why, _ranges(numbers)) for (name, why), numbers in when.items()]


def client_values(history: RunRecord, m: MetricSpec) -> list[float]:
    """The metric, or the number of examples, of each client that has it."""
    clients = history.result.clients.values() if history.result else ()
    if m is EXAMPLES:
        return [] if history.noisy else [client.examples for client in clients]
    return [client.metrics[m.key] for client in clients if not math.isnan(client.metrics.get(m.key, math.nan))]


def _ranges(numbers: list[int]) -> str:
    runs: list[list[int]] = []
    for n in numbers:
        if runs and n == runs[-1][1] + 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in runs)
