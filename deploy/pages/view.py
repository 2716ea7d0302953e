"""View of a run for all pages: its record, sections, figures and tables."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from markupsafe import Markup

from common.config.keys import respell
from common.metrics import EXAMPLES, MetricSpec
from common.options import leaves
from deploy.federation.runs import Origin, origin_of
from deploy.pages.metrics import is_error
from server.record.events import Finish, Metrics, Round, Start
from server.record.folder import RunDirectory
from server.record.result import Result

Status = Literal["completed", "failed", "unfinished"]


@dataclass(frozen=True)
class RunRecord:
    """Content of a run's folder, of a finished or running run.

    Args:
        run: Id of the run.
        config: Dotted key -> value.
        rounds: Rounds in order; if a resumed run repeated a round, the later one.
        status: Outcome of the run.
        reason: Reason of the outcome; empty if there is none.
        started: Time of its first start; None before it.
        result: Result of the run; None while it runs, or if it was killed.
        origin: Launch record; None if it was not started on this machine.
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
        """Title such as `fedrule on rules`."""
        return f"{self.config.get('method', '?')} on {self.task}"

    @property
    def task(self) -> str:
        """Name of the learning task."""
        return str(self.config.get("task", "?"))

    def called(self, client: str) -> str:
        """Return the display name of a client: its markets if partitioned on this machine, else its name."""
        return self.origin.markets.get(client, client) if self.origin else client

    def series(self, key: str) -> tuple[list[int], list[float]]:
        """Return rounds and values of an evaluation metric.

        The last round is omitted if it was measured on another split.
        """
        values = [(r.round, r.metrics[key]) for r in self.rounds if key in r.metrics]
        values = values[:-1] if self.tested and len(values) > 1 else values
        return [x for x, _ in values], [y for _, y in values]

    @property
    def noisy(self) -> bool:
        """True if noise covers what clients send.

        Numbers of examples and training losses are then not reported.
        """
        return str(self.config.get("privacy.unit", "none")) != "none"

    @property
    def redraws_noise(self) -> bool:
        """True if clients draw noise, if only on counts; the same command then results in another model."""
        return self.noisy or bool(self.result and self.result.privacy.counts)

    @property
    def reports_error(self) -> bool:
        """True if rounds have a training loss that is an error measure."""
        return not self.noisy and is_error(self.task, str(self.config.get("model")))

    @property
    def validated(self) -> bool:
        """True if rounds were measured on validation data."""
        return bool(self.config.get(f"tasks.{self.task}.validation-share", 0))

    @property
    def tested(self) -> bool:
        """True if the last round was measured on test data and earlier ones on validation data."""
        return bool(self.validated and self.rounds and self.rounds[-1].round == self.config.get("rounds"))

    @property
    def clusters(self) -> dict[str, list[tuple[int, int]]]:
        """Client -> (round, its cluster), in order; empty for methods with one model."""
        clusters: dict[str, list[tuple[int, int]]] = {}
        for r in self.rounds:
            for client, cluster in r.clusters.items():
                clusters.setdefault(client, []).append((r.round, cluster))
        return clusters


def read(path: Path) -> RunRecord:
    """Read the folder runs/<id>.

    Raises:
        ConfigError: There is no such run.
        DataError: Its result.json cannot be read.
    """
    folder = RunDirectory(path.parent, path.name)
    config, result = respell(dict(leaves(folder.config(), ""))), folder.result()
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
    """Return the shortest names that distinguish the runs."""
    methods = [str(h.config.get("method", "?")) for h in histories]
    seeded = [f"{method}, seed {h.config.get('seed', '?')}" for method, h in zip(methods, histories, strict=True)]
    names = ([*methods], [*seeded], [h.run for h in histories])
    return next((distinct for distinct in names if len(set(distinct)) == len(distinct)), names[-1])


def absences(rounds: tuple[Round, ...]) -> list[tuple[str, str, str]]:
    """Return (client, reason, rounds) for replies that did not count in full; rounds as `12–15, 20`."""
    when: dict[tuple[str, str], list[int]] = {}
    for r in rounds:
        for name in r.missing:
            when.setdefault((name, "did not answer"), []).append(r.round)
        for name, reason in [*r.refused.items(), *r.shortened.items()]:
            when.setdefault((name, reason), []).append(r.round)
    return [(name, why, _ranges(numbers)) for (name, why), numbers in when.items()]


def client_values(history: RunRecord, m: MetricSpec) -> list[float]:
    """Return the metric, or the number of examples, of each client that has it."""
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


ARROW = {"lower": "↓", "higher": "↑", "": ""}
"""Arrow of the better direction."""

Section = dict[str, Any]
Table = dict[str, Any]


def section(title: str, note: str, figures: list[dict[str, str]], table: Table | None = None) -> Section:
    """Return a section; empty, and left out of the page, without figures."""
    return {"title": title, "note": note, "figures": figures, "table": table} if figures else {}


def figure(title: str, better: str, svg: str, caption: str) -> dict[str, str]:
    """Return a figure; `better` as in `MetricSpec`."""
    return {"title": title, "arrow": ARROW[better], "svg": svg, "caption": caption}


def figure_of(m: MetricSpec, svg: str, caption: str) -> dict[str, str]:
    """Return the figure of one metric."""
    return figure(m.label, m.better, svg, caption)


def named(names: Sequence[str]) -> Markup:
    """Return a list of names without line breaks inside names."""
    return Markup(", ").join(Markup('<span class="name">{}</span>').format(name) for name in names)


def table(title: str, header: Sequence[str], rows: list[list[str]], kind: str = "numbers") -> Table:
    """Return a collapsible table; `kind` is `numbers`, aligned right, or `words`."""
    return {"title": title, "kind": kind, "header": header, "rows": rows}
