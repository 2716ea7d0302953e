"""Signal of training in runs with noise, against what they gain: the threshold of the refusal.

Further runs, protocol `signal`, have more ε than the page's tables, so that signals around the threshold are covered.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from statistics import fmean

import numpy as np

from common.config.parse import parse
from common.privacy.signal import LEAST_SIGNAL, LEAST_SIGNAL_OF_MAGNITUDES, Training, describe_training
from common.text import count
from studies.harness.claim import Claim, bullet_list
from studies.harness.experiment import Experiment, Settings
from studies.harness.results import Results
from studies.harness.row import Row, RowKey
from studies.harness.table import Table
from studies.privacy import cases
from studies.privacy.cases import PROTECTIONS, SETTINGS, Protection, Setting, noise_settings
from studies.privacy.figures import number

PROTOCOL, SEEDS, RIDGE = "signal", 2, "ridge"

CLIENTS = {"rules": 125, "sessions": 60, "traffic": 8}
"""Task whose default method trains -> number of clients of its runs."""

NUMBERS = {"rules": 9_861, "sessions": 55_979, "traffic": 10_026}
"""Task -> number of parameters of its default model under the embedded vocabulary."""

WIDE_EPSILONS: dict[str, tuple[float, ...]] = {
    "rules": (16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0),
    "sessions": (32.0, 128.0, 512.0, 2048.0),
}
"""Task -> further ε of training under the noise of two helpers."""

HOMES = (1000,)
"""Numbers of homes of the runs in closed form."""

CLOSED_EPSILONS = (0.5, 1.0, 2.0, 8.0)


@dataclass(frozen=True)
class SignalSet:
    """Runs on one data set.

    Args:
        name: Name of the set in the stored results.
        setting: Task, metric and floor.
        data: Source of the embedded data.
    """

    name: str
    setting: Setting
    data: str

    def experiments(self, defaults: Settings) -> Iterator[Experiment]:
        """Yield training at further ε, on the page's sets; the closed form on sets of homes."""
        task = self.setting.task
        shared = {"task": task, "federation.min-clients": 1, **defaults, **self.setting.settings}
        shared |= {self.setting.validation_key: self.setting.validation}
        if self.name == task:
            for epsilon in WIDE_EPSILONS[task]:
                yield self._row(shared, "helpers", epsilon)
        else:
            for protection in self.setting.protections:
                for epsilon in CLOSED_EPSILONS:
                    yield self._row({**shared, "method": RIDGE}, protection, epsilon)

    def _row(self, shared: Settings, protection: Protection, epsilon: float) -> Experiment:
        settings = {**shared, **noise_settings(self.setting.task, protection, epsilon)}
        title = f"{PROTECTIONS[protection]}, ε = {epsilon:g}"
        return Experiment(self.setting.row(protection, epsilon), title, settings, seeds=SEEDS, protocol=PROTOCOL)


def signal_sets() -> Iterator[SignalSet]:
    """Yield the sets of the further runs."""
    for setting in SETTINGS:
        if setting.task in WIDE_EPSILONS:
            yield SignalSet(setting.task, setting, setting.data)
    rules = next(setting for setting in SETTINGS if setting.task == "rules")
    for homes in HOMES:
        yield SignalSet(f"rules-{homes}", rules, f"demo:0-{homes}")


@dataclass(frozen=True)
class SignalPoint:
    """Stored runs of one row.

    Args:
        row: The row.
        setting: Task, metric and floor.
        protection: Protection of the row.
        epsilon: ε of the row.
    """

    row: Row
    setting: Setting
    protection: Protection
    epsilon: float

    @property
    def training(self) -> Training:
        """Public numbers of the training, by the product's own formula."""
        helpers, task = 2 if self.protection == "helpers" else 0, self.setting.task
        config = parse(self.row.about.config)
        return describe_training(config, {"model": np.zeros(NUMBERS[task])}, CLIENTS[task], helpers)

    @cached_property
    def signal(self) -> float:
        """Signal of the training."""
        return self.training.signal

    @property
    def gain(self) -> float:
        """Mean over seeds of the gain over the floor of the same run; positive is better."""
        floors, sign = self.row.values(self.setting.floor), 1 if self.setting.higher else -1
        return fmean(sign * (v - floors[seed]) for seed, v in self.row.values(self.setting.metric).items())

    @property
    def is_below(self) -> bool:
        """True if the model ended below its floor."""
        return self.gain < -self.setting.smallest

    def cells(self) -> list[str]:
        """Return the point as cells of the table."""
        value, seeds = fmean(self.row.values(self.setting.metric).values()), len(self.row.trials)
        figures = [f"{self.signal:.2g}", number(value), number(self.gain, "+"), str(seeds)]
        return [
            f"{self.setting.task}, {parse(self.row.about.config).method}",
            PROTECTIONS[self.protection],
            f"{self.epsilon:g}",
            *figures,
        ]


def points(results: Results) -> list[SignalPoint]:
    """Return the stored runs whose default method trains, by falling signal."""
    found = []
    for setting in (one for one in SETTINGS if one.task in CLIENTS):
        for protocol, epsilons in ((cases.PROTOCOL, cases.EPSILONS), (PROTOCOL, WIDE_EPSILONS.get(setting.task, ()))):
            for protection, epsilon in product(setting.protections, epsilons):
                row = results.rows.get(RowKey(setting.task, protocol, setting.row(protection, epsilon)))
                if row and row.trials and row.about.config:
                    found.append(SignalPoint(row, setting, protection, epsilon))
    return sorted(found, key=lambda one: one.signal, reverse=True)


def section(results: Results) -> Iterator[str]:
    """Yield the section on the signal of training; nothing without runs."""
    found = points(results)
    if not found:
        return
    yield INTRODUCTION
    header = ["task, method", "protection", "ε", "signal", "metric", "gain over the floor", "seeds"]
    yield str(Table(header, [one.cells() for one in found]))
    yield bullet_list([*map(str, claims(found)), *_closed(results)])


def claims(found: list[SignalPoint]) -> Iterator[Claim]:
    """Yield what each threshold separates."""
    for least, methods in ((LEAST_SIGNAL, "rules and traffic"), (LEAST_SIGNAL_OF_MAGNITUDES, "sessions")):
        if not (of := [one for one in found if one.training.least == least]):
            continue
        started = [one.signal for one in of if one.signal >= least]
        below = [one.signal for one in of if one.is_below]
        largest = f"; the largest signal below a floor is {max(below):.2g}" if below else ""
        smallest = f", the smallest of {count(len(started), 'row')} that start {min(started):.2g}" if started else ""
        text = f"No training of {methods} with a signal of at least {least:g} ended below its floor{largest}{smallest}"
        yield Claim(text, not any(signal >= least for signal in below))


def _closed(results: Results) -> Iterator[str]:
    """Yield the claim on the closed form."""
    for one in (one for one in signal_sets() if one.name != one.setting.task):
        rows = {
            (protection, epsilon): results.rows.get(RowKey(one.name, PROTOCOL, one.setting.row(protection, epsilon)))
            for protection in one.setting.protections
            for epsilon in CLOSED_EPSILONS
        }
        found = [SignalPoint(row, one.setting, *key) for key, row in rows.items() if row and row.trials]
        if found:
            lists = "; ".join(f"{PROTECTIONS[p]}: {_gains(found, p)}" for p in one.setting.protections)
            text = f"Closed form, {one.name.partition('-')[2]} homes: no run is below its floor (gain over it, {lists})"
            yield str(Claim(text, not any(point.is_below for point in found)))


def _gains(found: list[SignalPoint], protection: Protection) -> str:
    of = [one for one in found if one.protection == protection]
    return ", ".join(f"{number(one.gain, '+')} at ε = {one.epsilon:g}" for one in of)


INTRODUCTION = f"""## Signal of training

The signal is the largest norm that the updates of a run can add up to, over the expected norm of the noise on them
(`common/privacy/signal.py`). It follows from public numbers. Server and client refuse training of a signal below
{LEAST_SIGNAL:g}, and below {LEAST_SIGNAL_OF_MAGNITUDES:g} for FedGA, which divides its step by the magnitude of updates.
Rows with ε above 8 protect next to nothing; they stand for larger federations, whose signal grows with the number of clients.
"""
"""Text of the section."""
