"""Verdict and figure of the audit."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from studies.audit.cases import WAYS, Way
from studies.audit.figures import Figures, audited, share
from studies.harness.figure_file import drawn
from studies.harness.results import Results
from studies.harness.row import Metrics

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKS: dict[Way, tuple[str, str]] = {
    "gaussian": ("o", "#1f5fa8"),
    "laplace": ("s", "#c98a1b"),
    "privunit": ("^", "#2e8b57"),
    "sum": ("D", "#8e44ad"),
}
APART = 0.12
"""Distance of marks of one ε."""

FAULT_COLOUR, CLAIM_COLOUR = "#c0392b", "#5b6570"


class AuditHeadline:
    """Headline of the audit: bounds against claims, and detected faults."""

    def section(self, results: Results, study: str) -> Iterator[str]:
        """Yield verdict and figure, as Markdown."""
        figures = Figures(results)
        shares = [share(metrics) for _, metrics in figures.sound]
        below, faults = sum(value <= 1 for value in shares), figures.faulty
        found = sum(share(metrics) > 1 for _, metrics in faults)
        trainings = [metrics for run, trials in figures.one_runs if not run.fault for metrics in trials]
        kept = sum(metrics["audited_epsilon"] <= metrics["claimed_epsilon"] for metrics in trainings)
        yield (
            f"**Verdict.** On planted updates, the audited privacy loss is below the claimed one in {below} of"
            f" {len(shares)} audits of clients ({min(shares):.2f} to {max(shares):.2f} of it). So it is in {kept} of"
            f" {len(trainings)} DP-SGD trainings. {found} of {len(faults)} deliberate faults are detected. A lower bound is"
            f" no proof.{_of_uploads(figures)}"
        )
        words = (
            "Audited against claimed ε: bounds of sound code lie below the diagonal, those of deliberate faults above"
        )
        yield f"![{words}](assets/{study}.svg)"

    def draw(self, results: Results, path: Path) -> None:
        """Write the figure: audited against claimed ε, for clients and for records."""
        figures = Figures(results)
        with drawn(path, 7.2, 3.4) as figure:
            clients, records = figure.subplots(1, 2)
            _draw_clients(clients, figures)
            _draw_records(records, figures)
            for axes in (clients, records):
                axes.plot([0, 9], [0, 9], "-", color=CLAIM_COLOUR, linewidth=1, label="claim", zorder=1)
                axes.set(xlim=(0, 9), ylim=(0, 9), xticks=range(0, 9, 2), yticks=range(0, 9, 2))
                axes.set_xlabel("claimed ε", fontsize=9)
                axes.grid(color="#d9dde2", linewidth=0.6)
                axes.set_axisbelow(True)
                axes.spines[["top", "right"]].set_visible(False)
                axes.tick_params(length=0, labelsize=8)
                axes.legend(fontsize=7.5, frameon=False, loc="upper left")
            clients.set_ylabel("audited ε (lower bound)", fontsize=9)


def _of_uploads(figures: Figures) -> str:
    """Return what one client's update shows without and with its own noise."""
    read = {
        upload.epsilon: read
        for upload, read, _ in figures.uploads
        if (upload.task, upload.steps, upload.together) == ("sessions", 1, 1)
    }
    if 0.0 not in read:
        return ""
    noise = "".join(f" With own noise of ε = {e:g}, it is {100 * r:.0f} %." for e, r in read.items() if e)
    return f" Without noise, one update of sessions shows {100 * read[0.0]:.0f} % of a visitor's items.{noise}"


def _draw_clients(axes: "Axes", figures: Figures) -> None:
    axes.set_title("a client's update", fontsize=9)
    for place, (way, (mark, colour)) in enumerate(MARKS.items()):
        points = [_point(metrics, place) for case, metrics in figures.sound if (case.way, case.rounds) == (way, 1)]
        if points:
            axes.plot(
                *zip(*points, strict=True),
                mark,
                color=colour,
                markersize=5,
                label=WAYS[way],
                linestyle="",
                clip_on=False,
            )
    if faulty := [_point(metrics, 0) for _, metrics in figures.faulty]:
        axes.plot(*zip(*faulty, strict=True), "x", color=FAULT_COLOUR, markersize=6, label="deliberate faults")


def _draw_records(axes: "Axes", figures: Figures) -> None:
    axes.set_title("a record under DP-SGD, one training", fontsize=9)
    kinds = {"all records in a step": "o", "half of them, 8 rounds": "s", "without noise": "x"}
    for label, mark in kinds.items():
        points = [
            (run.epsilon, audited(trials))
            for run, trials in figures.one_runs
            if mark == ("x" if run.fault else "s" if run.rounds > 1 else "o")
        ]
        colour = FAULT_COLOUR if mark == "x" else MARKS["gaussian" if mark == "o" else "laplace"][1]
        if points:
            axes.plot(
                *zip(*points, strict=True), mark, color=colour, markersize=5, label=label, linestyle="", clip_on=False
            )


def _point(metrics: Metrics, place: int) -> tuple[float, float]:
    """Return claimed and audited ε; marks of one ε lie side by side."""
    return metrics["claimed_epsilon"] + APART * place, metrics["audited_epsilon"]


HEADLINE = AuditHeadline()
