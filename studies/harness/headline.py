"""Headline of a study: a verdict in one sentence and one figure, from the stored results."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Literal, Protocol

from common.errors import DataError
from studies.harness.claim import Comparison
from studies.harness.figure_file import drawn
from studies.harness.results import Results
from studies.harness.row import RowKey

Part = Literal["alone", "pooled", "paper", "default", ""]
"""Role of an entry.

`alone` is the best simple predictor from an owner's data, `pooled` the same from all owners' data. `paper` is the paper's
method, `default` the default model. Further entries of the figure have an empty role.
"""

Values = Mapping[int, float]
"""Seed -> value."""


class Opening(Protocol):
    """First screen of a page."""

    def section(self, results: Results, study: str) -> Iterator[str]:
        """Yield verdict and figure, as Markdown."""

    def draw(self, results: Results, path: Path) -> None:
        """Write the figure."""


@dataclass(frozen=True)
class Entry:
    """Entry of a headline.

    Args:
        label: Name in the figure and in the sentence.
        key: Row as `set/protocol/row`.
        metric: Metric of that row.
        part: Its role.
        clients: Clients whose mean counts; empty for the row's own mean over clients.
    """

    label: str
    key: str
    metric: str
    part: Part = ""
    clients: Sequence[str] = ()

    def values(self, results: Results) -> Values:
        """Return seed -> value.

        Raises:
            DataError: The row is not measured.
        """
        key = RowKey(*self.key.split("/"))
        row = results.rows.get(key)
        if row is None:
            words = f"--sets {key.set} --only {key.protocol}/{key.row}"
            raise DataError(f"the page needs row {self.key}, which is not stored; compute it with {words}")
        if not self.clients:
            return row.values(self.metric)
        found = [row.values(self.metric, client) for client in self.clients]
        return {seed: fmean(one[seed] for one in found) for seed in found[0] if all(seed in one for one in found)}


@dataclass(frozen=True)
class Headline:
    """Headline of a study.

    Args:
        task: Name of the task.
        data: Data set, as in a table's cell.
        measure: Name of the metric with its unit.
        higher: True if larger values are better.
        digits: Digits behind the point.
        entries: Entries of the figure, top first.
        scale: Factor of every value.
    """

    task: str
    data: str
    measure: str
    higher: bool
    digits: int
    entries: tuple[Entry, ...]
    scale: float = 1.0

    def of(self, part: Part) -> Entry | None:
        """Return the entry of a role; None if the study has none."""
        return next((entry for entry in self.entries if entry.part == part), None)

    def cell(self, results: Results, part: Part) -> str:
        """Return the mean over seeds; a dash without such an entry."""
        entry = self.of(part)
        return self._text(fmean(entry.values(results).values())) if entry else "–"

    def sentence(self, results: Results) -> str:
        """Return the verdict on the default model."""
        default = self.of("default")
        assert default is not None
        own = default.values(results)
        against = [entry for entry in self.entries if entry.part and entry is not default]
        parts = [f"{self.judge(results, entry)} {entry.label} ({self.cell(results, entry.part)})" for entry in against]
        listed = f"{', '.join(parts[:-1])} and {parts[-1]}"
        mean = self._text(fmean(own.values()))
        measure = self.measure[0].upper() + self.measure[1:]
        return f"On {self.data}, the default model ({mean}) is {listed}. {measure}; means over seeds."

    def judge(self, results: Results, entry: Entry) -> str:
        """Return `better than`, `level with` or `worse than` for the default, by two standard errors."""
        default = self.of("default")
        assert default is not None
        first, second = default.values(results), entry.values(results)
        if len(second) == 1:  # a predictor without randomness
            second = dict.fromkeys(first, next(iter(second.values())))
        elif len(first) == 1:  # a closed form without randomness
            first = dict.fromkeys(second, next(iter(first.values())))
        seeds = sorted(first.keys() & second.keys())
        pair = Comparison(tuple(first[s] for s in seeds), tuple(second[s] for s in seeds), self.higher)
        error = pair.deviation / sqrt(max(len(seeds), 1))
        margin = max(
            2 * error, 0.5 * 10**-self.digits / self.scale
        )  # differences below the last printed digit are level
        gain = pair.mean if self.higher else -pair.mean
        return "better than" if gain >= margin else "worse than" if gain <= -margin else "level with"

    def section(self, results: Results, study: str) -> Iterator[str]:
        """Yield verdict and figure, as Markdown."""
        yield f"**Verdict.** {self.sentence(results)}"
        rows = "; ".join(f"{entry.label} {self._text(fmean(entry.values(results).values()))}" for entry in self.entries)
        yield f"![{self.measure} on {self.data}: {rows}](assets/{study}.svg)"

    def draw(self, results: Results, path: Path) -> None:
        """Write the figure: a dot and a standard deviation per entry. Equal results give equal bytes."""
        with drawn(path, 4.8, 0.55 + 0.42 * len(self.entries)) as figure:  # readable on a narrow screen
            axes = figure.subplots()
            for place, entry in enumerate(self.entries):
                values = [self.scale * value for value in entry.values(results).values()]
                deviation = stdev(values) if len(values) > 1 else 0.0
                colour = "#1f5fa8" if entry.part == "default" else "#5b6570"
                axes.errorbar(fmean(values), place, xerr=deviation, fmt="o", color=colour, capsize=3, markersize=7)
                axes.annotate(
                    self._text(fmean(values) / self.scale), (fmean(values), place), (0, 7), textcoords="offset points",
                    ha="center", fontsize=8, color=colour,
                )  # fmt: skip
            axes.set_yticks(range(len(self.entries)), [entry.label for entry in self.entries])
            axes.set_ylim(len(self.entries) - 0.5, -0.75)
            axes.margins(x=0.08)
            axes.locator_params(axis="x", nbins=4)
            axes.set_xlabel(f"{self.measure} ({'right' if self.higher else 'left'} is better)")
            axes.grid(axis="x", color="#d9dde2", linewidth=0.6)
            axes.set_axisbelow(True)
            axes.spines[["top", "right", "left"]].set_visible(False)
            axes.tick_params(length=0)

    def _text(self, value: float) -> str:
        text = f"{self.scale * value:.{self.digits}f}"
        return text.removeprefix("0") if text.startswith("0.") else text
