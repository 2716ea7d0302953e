"""Model of a run for every renderer: metrics, texts, record, comparison, sections of a page."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import mean, stdev
from typing import Any, Literal

from common.config.keys import respell
from common.errors import ConfigError
from common.metrics import EXAMPLES, USED, MetricFamily, MetricSpec
from common.options import leaves
from common.tasks.registry import TASKS
from common.text import count, few, printable, size
from deploy.federation.runs import Origin, origin_of
from server.record.events import Finish, Metrics, RoundEvent, Start
from server.record.folder import RunDirectory
from server.record.result import Result

_HEADLINE_CUT = "20"  # the cut-off that represents a metric with several

ARROW = {"lower": "↓", "higher": "↑", "": ""}
"""Arrow of the better direction."""


def measure(key: str) -> MetricSpec:
    """Return the description of a metric; an unknown metric is named by its key."""
    return _describe(key, *_known())


def in_order(keys: Iterable[str]) -> list[MetricSpec]:
    """Return the metrics in the order of tables: cut-offs ascending, unknown metrics last by name."""
    return sorted(map(measure, set(keys)), key=_rank)


def brief(keys: Iterable[str], task: str) -> list[MetricSpec]:
    """Return the metrics that stand in short tables of a run of that task, in order."""
    if task not in TASKS:
        return in_order(keys)
    spec = TASKS[task]
    metrics, families = {m.key: m for m in spec.metrics}, {f.prefix: f for f in (*spec.families, USED)}
    return [m for m in in_order(keys) if _describe(m.key, metrics, families).short_table]


def headlines(keys: Iterable[str], *, baselines: bool = True, first: str = "") -> list[MetricSpec]:
    """Return the metrics of progress lines and curves, in order, with those of baselines if wanted.

    A metric of lists as people see them replaces that of all candidates. `first` is the key of the metric that leads.
    """
    keys = set(keys)
    found = [m for m in in_order(keys) if m.headline and (baselines or not m.baseline) and f"{m.key}_shown" not in keys]
    return sorted(found, key=lambda m: m.key != first)


def objective_of(task: str) -> str:
    """Return the key of the metric that decides on models of a task; empty if it cannot be imported."""
    try:
        return TASKS[task].objective.metric
    except ConfigError:
        return ""


def is_error(task: str, model: str) -> bool:
    """Return True if the training loss of a run of that task is an error measure."""
    return task not in TASKS or TASKS[task].loss_is_error("paper" if model == "paper" else "default")


def curve(metrics: dict[str, float]) -> dict[int, float]:
    """Return cut-off -> value over all hit rates `hrN` of the metrics."""
    values = {int(key.removeprefix("hr")): value for key, value in metrics.items() if re.fullmatch(r"hr\d+", key)}
    return dict(sorted(values.items()))


def format_value(m: MetricSpec, value: float | None) -> str:
    """Return the value as text; a dash where there is none."""
    if value is None or math.isnan(value):
        return "–"
    return f"{value:.{m.digits}f}" if abs(value) < 10_000 else f"{value:.3g}"


def folded(measures: Iterable[MetricSpec], first: str = "", most: int = 5) -> list[MetricSpec]:
    """Return the metrics of cards: `first`, then headlines; one of near duplicates such as other cut-offs."""
    kinds: dict[str, MetricSpec] = {}
    for m in sorted(measures, key=lambda m: (m.key != first, not m.headline)):
        kinds.setdefault(re.split(r",| @| of ", m.label)[0], m)
    return list(kinds.values())[:most]


def local_metrics(result: Result) -> str:
    """Return metrics that this machine's own clients measured and did not send; empty if there are none."""
    values = [f"{m.short} {format_value(m, result.local[m.key])}" for m in brief(result.local, result.task)]
    return f"{', '.join(values)}; measured on this machine by its own clients, not sent" if values else ""


@cache
def _known() -> tuple[dict[str, MetricSpec], dict[str, MetricFamily]]:
    """Return metrics by key and families by prefix of all tasks that can be imported."""
    metrics: dict[str, MetricSpec] = {}
    families = {USED.prefix: USED}
    for task in TASKS.usable():
        metrics |= {m.key: m for m in task.metrics if m.key not in metrics}
        families |= {family.prefix: family for family in task.families if family.prefix not in families}
    return metrics, families


def _describe(key: str, metrics: dict[str, MetricSpec], families: dict[str, MetricFamily]) -> MetricSpec:
    if family := next((family for prefix, family in families.items() if key.startswith(prefix)), None):
        base = _describe(key.removeprefix(family.prefix), metrics, families)
        return replace(
            base,
            key=key,
            short=f"{family.prefix[:-1]} {base.short}",
            label=f"{base.label}, {family.origin}",
            better=base.better if family.better else "",
            headline=key in family.headlines,
            baseline=family.baseline or base.baseline,
            short_table=base.short_table if family.short_table is None else key in family.short_table,
        )
    if key in metrics:
        return metrics[key]
    stem, cut = split_number(key)
    template = metrics.get(f"{stem}*") if cut else None
    if template is None:
        return MetricSpec(key, key, key.replace("_", " ").capitalize(), "", 3, "")
    short, label, meaning = (text.replace("*", cut) for text in (template.short, template.label, template.meaning))
    return replace(template, key=key, short=short, label=label, meaning=meaning, headline=cut == _HEADLINE_CUT)


def split_number(name: str) -> tuple[str, str]:
    """Return a name without the digits at its end, such as a metric's cut-off, and these."""
    stem = name.rstrip("0123456789")
    return stem, name[len(stem) :]


def _rank(m: MetricSpec) -> tuple[int, int, tuple[int, ...], str]:
    metrics, families = _known()
    keys, prefixes = list(metrics), list(families)
    base, origins = m.key, []
    while prefix := next((p for p in prefixes if base.startswith(p)), ""):
        base = base.removeprefix(prefix)
        origins.append(prefixes.index(prefix))
    stem, cut = split_number(base)
    row = next((keys.index(key) for key in (base, f"{stem}*") if key in keys), len(keys))
    return (row, int(cut or 0), tuple(origins), m.key)


COMMAND_MARK = "`"
"""Mark before and after a command in the text of a result."""


def duration(seconds: float) -> str:
    """Return a duration: `0.42 s`, `12.6 s`, `3 min 05 s`, `2 h 07 min`."""
    if seconds < 9.995:
        return f"{seconds:.2f} s"
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def measured_by(result: Result) -> str:
    """Return what the metrics are means over; empty without metrics of single clients."""
    if result.summed:
        noise = f", each ± {2 * result.summed.noise:.1%} of its range by noise" if result.summed.noise else ""
        return f"plain means over {count(result.summed.clients, 'client')}, from secure sums{noise}"
    shared = (client.metrics.values() for client in result.clients.values())
    measuring, clients = sum(not all(map(math.isnan, values)) for values in shared), len(result.clients)
    if not (measuring and result.metrics):
        return ""
    of_all = f"; the other {clients - measuring:,} have no held-out data, share no metrics or are gone"
    return f"as means over the records of {count(measuring, 'client')}{of_all * (measuring < clients)}"


def unmeasured(result: Result) -> str:
    """Return why a run has no metrics, and how many clients trained; empty if it has some."""
    if result.metrics or not result.clients:
        return ""
    trained = count(len(result.clients), "client")
    if result.privacy.unit == "none":
        return f"no metrics: no client has data to hold out, or shares metrics; {trained} trained"
    if result.privacy.trust == "helpers":
        return f"no metrics: none are summed (`privacy.metric-share`) or shared (`share-metrics = always`); {trained} trained"
    return f"no metrics: owners share none beside noise (policy `share-metrics = always`); {trained} trained"


def first_line(reason: str, longest: int = 160) -> str:
    """Return the first line of a reason, shortened to `longest` characters; stack traces stay in the log."""
    return printable(reason.strip().partition("\n")[0], longest)


Status = Literal["completed", "failed", "unfinished"]


@dataclass(frozen=True)
class RunRecord:
    """Content of a run's folder, of a finished or running run.

    Args:
        folder: The folder.
        config: Dotted key -> value.
        rounds: Rounds in order; if a resumed run repeated a round, the later one.
        status: Outcome of the run.
        reason: Reason of the outcome; empty if there is none.
        start: Its first start; None before it.
        result: Result of the run; None while it runs, or if it was killed.
        origin: Launch record; None if it was not started on this machine.
    """

    folder: RunDirectory
    config: dict[str, Any]
    rounds: tuple[RoundEvent, ...]
    status: Status
    reason: str
    start: Start | None
    result: Result | None
    origin: Origin | None = None

    @property
    def run(self) -> str:
        """Id of the run."""
        return self.folder.path.name

    @property
    def started(self) -> float | None:
        """Time of the first start, seconds since 1970; None before it."""
        return self.start.time if self.start else None

    @property
    def rounds_done(self) -> int:
        """Number of the last round; 0 before it."""
        return self.rounds[-1].round if self.rounds else 0

    @property
    def epsilon(self) -> float | None:
        """ε of the whole run; None without noise."""
        epsilon = self.config.get("privacy.epsilon")
        return float(epsilon) if self.noisy and isinstance(epsilon, int | float) else None

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
    def best_round(self) -> int:
        """Number of the best round by the task's objective, so far or of the result; 0 without any."""
        if self.result and self.result.best:
            return self.result.best.round
        key = objective_of(self.task)
        rounds = [r for r in self.rounds if r.split != "test" and not math.isnan(r.metrics.get(key, math.nan))]
        sign = -1 if measure(key).better == "higher" else 1
        values = {r.round: sign * (r.metrics[key] if math.isnan(r.selection) else r.selection) for r in rounds}
        return min(values, key=values.__getitem__, default=0)

    @property
    def noisy(self) -> bool:
        """True if noise covers what clients send. Training losses are then not reported."""
        return str(self.config.get("privacy.unit", "none")) != "none"

    @property
    def hides_sizes(self) -> bool:
        """True if noise or masks hide how many examples a client has, and its reply says 1."""
        return self.noisy or self.config.get("privacy.trust") == "helpers"

    @property
    def reports_error(self) -> bool:
        """True if rounds have a training loss that is an error measure."""
        has_loss = any(math.isfinite(r.loss) for r in self.rounds)
        return has_loss and not self.noisy and is_error(self.task, str(self.config.get("model")))

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
    rounds = {event.round: event for event in events if isinstance(event, RoundEvent)}
    end = events[-1] if events and isinstance(events[-1], Finish) else None
    outcome = result or end
    return RunRecord(
        folder=folder,
        config=config,
        rounds=tuple(rounds[r] for r in sorted(rounds)),
        status=outcome.status if outcome else "unfinished",
        reason=outcome.reason if outcome else "",
        start=next((event for event in events if isinstance(event, Start)), None),
        result=result,
        origin=origin_of(path),
    )


def labels(histories: Sequence[RunRecord]) -> list[str]:
    """Return the shortest names that distinguish the runs."""
    methods = [str(h.config.get("method", "?")) for h in histories]
    seeded = [f"{method}, seed {h.config.get('seed', '?')}" for method, h in zip(methods, histories, strict=True)]
    names = ([*methods], [*seeded], [h.run for h in histories])
    return next((distinct for distinct in names if len(set(distinct)) == len(distinct)), names[-1])


def absences(rounds: tuple[RoundEvent, ...]) -> list[tuple[str, str, str]]:
    """Return (clients, reason, rounds) for replies that did not count in full; rounds as `12–15, 20`."""
    when: dict[tuple[str, str], list[int]] = {}
    for r in rounds:
        for name in r.missing:
            when.setdefault((name, "did not answer"), []).append(r.round)
        for name, reason in [*r.refused.items(), *r.shortened.items()]:
            when.setdefault((name, reason), []).append(r.round)
    alike: dict[tuple[str, str], list[str]] = {}
    for (name, why), numbers in when.items():
        alike.setdefault((why, _ranges(numbers)), []).append(name)
    return [(few(names), *both) for both, names in alike.items()]


def client_values(history: RunRecord, m: MetricSpec) -> list[float]:
    """Return the metric, or the number of examples, of each client that has it."""
    if history.result is None:
        return []
    if m is EXAMPLES:
        return [] if history.hides_sizes else [client.examples for client in history.result.clients.values()]
    return values_of(history.result, m)


def values_of(result: Result, m: MetricSpec) -> list[float]:
    """Return the metric of each client that has it."""
    values = (client.metrics.get(m.key, math.nan) for client in result.clients.values())
    return [value for value in values if not math.isnan(value)]


def finite(metrics: Metrics) -> dict[str, float | None]:
    """Return metrics as JSON holds them: None for a value that is no finite number."""
    return {key: value if math.isfinite(value) else None for key, value in metrics.items()}


def _ranges(numbers: list[int]) -> str:
    runs: list[list[int]] = []
    for n in numbers:
        if runs and n == runs[-1][1] + 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in runs)


_TOTALS: tuple[tuple[str, Callable[[Result], str]], ...] = (
    ("Rounds", lambda r: str(r.rounds_done)),
    ("Clients", lambda r: str(len(r.clients))),
    ("Time", lambda r: duration(r.seconds)),
    ("To the clients", lambda r: size(r.bytes_down)),
    ("From the clients", lambda r: size(r.bytes_up)),
)


def compare_runs(histories: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """Return every metric of the final models, clear best values marked, then the totals of the runs."""
    rows = []
    for m in in_order(key for history in histories for key in history.final):
        cells = [{"text": format_value(m, h.final.get(m.key)), "best": _is_best(m, h, histories)} for h in histories]
        rows.append({"label": m.label, "arrow": ARROW[m.better], "meaning": m.meaning, "cells": cells})
    for label, total in _TOTALS:
        cells = [{"text": total(h.result) if h.result else "–", "best": False} for h in histories]
        rows.append({"label": label, "arrow": "", "meaning": "", "cells": cells})
    return rows


def _is_best(m: MetricSpec, one: RunRecord, histories: Sequence[RunRecord]) -> bool:
    """Return True if a run is clearly better than every other one of its task that has the metric."""
    rivals = [other for other in histories if other is not one and other.task == one.task and other.result]
    rivals = [other for other in rivals if math.isfinite(other.final.get(m.key, math.nan))]
    sign = {"higher": 1, "lower": -1}.get("" if m.baseline else m.better, 0)
    found = [pairs([m], other, one).get(m) for other in rivals]
    return bool(found) and all(gain and gain.is_clear and sign * gain.mean > 0 for gain in found)


MIN_PAIRS = 5
"""Number of clients below which a difference is too uncertain to be called one."""


@dataclass(frozen=True)
class Paired:
    """Difference of a metric, second run minus first, over the clients that have it in both.

    The standard error is NaN for fewer than two clients.
    """

    mean: float
    se: float
    clients: int

    @property
    def is_clear(self) -> bool:
        """True if the mean is at least two standard errors from 0, over enough clients."""
        return self.clients >= MIN_PAIRS and abs(self.mean) >= 2 * self.se and self.mean != 0


def pairs(measures: Iterable[MetricSpec], first: RunRecord, second: RunRecord) -> dict[MetricSpec, Paired]:
    """Return the paired difference of each metric that a client has in both runs."""
    before, after = ({} if run.result is None else run.result.clients for run in (first, second))
    both, found = before.keys() & after.keys(), {}
    for m in measures:
        gains = [after[name].metrics.get(m.key, math.nan) - before[name].metrics.get(m.key, math.nan) for name in both]
        if finite_gains := [gain for gain in gains if math.isfinite(gain)]:
            n = len(finite_gains)
            se = stdev(finite_gains) / math.sqrt(n) if n > 1 else math.nan
            found[m] = Paired(mean(finite_gains), se, n)
    return found


def find_mismatches(histories: Sequence[RunRecord]) -> list[str]:
    """Return what differs between runs so that their metrics are not comparable: task, data or split."""
    traits = [_traits(history) for history in histories]
    return [name for name in traits[0] if len({one[name] for one in traits}) > 1]


def _traits(history: RunRecord) -> dict[str, object]:
    """Return what must be equal in comparable runs: task, split, and a fingerprint of the data.

    A run of an earlier release has no fingerprint. Its vocabulary and each client's number of records stand in.
    """
    task, start, origin = history.task, history.start, history.origin
    shares = tuple(history.config.get(f"tasks.{task}.{key}") for key in ("test-share", "validation-share"))
    if start and start.fingerprint:
        return {"task": task, "data": start.fingerprint, "split": (shares, start.split)}
    clients = history.result.clients if history.result else {}
    examples = tuple(sorted((name, client.examples) for name, client in clients.items()))
    names = history.folder.catalogue() if history.folder.has_catalogue else ""  # clients may have found none
    data = names, origin.data if origin else "", examples
    return {"task": task, "data": data, "split": (shares, history.config.get("seed"))}


Section = dict[str, Any]
Figure = dict[str, str]
Table = dict[str, Any]


def section(title: str, note: str, figures: list[Figure], table: Table | None = None) -> Section:
    """Return a section; empty, and left out of the page, without figures."""
    return {"title": title, "note": note, "figures": figures, "table": table} if figures else {}


def figure(title: str, better: str, svg: str, caption: str) -> Figure:
    """Return a figure; `better` as in `MetricSpec`."""
    return {"title": title, "arrow": ARROW[better], "svg": svg, "caption": caption}


def figure_of(m: MetricSpec, svg: str, caption: str) -> Figure:
    """Return the figure of one metric."""
    return figure(m.label, m.better, svg, caption)


def table(title: str, header: Sequence[str], rows: list[list[str]], kind: str = "numbers") -> Table:
    """Return a collapsible table; `kind` is `numbers`, aligned right, or `words`."""
    return {"title": title, "kind": kind, "header": header, "rows": rows}
