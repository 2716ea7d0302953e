"""Verdict and figure of the robustness study."""

from collections.abc import Iterator
from pathlib import Path

from studies.harness.figure_file import drawn
from studies.harness.results import Results
from studies.robustness.cases import ATTACKS, RULES, SCALED, SETTINGS, SHARES, percent
from studies.robustness.figures import HARMFUL, Figures

COLOURS = dict(zip(RULES, ("#5b6570", "#c0392b", "#c98a1b", "#2e8b57", "#1f5fa8"), strict=True))
MIDDLE = 0.2


class RobustnessHeadline:
    """Headline of the study: what the rules keep of the quality under the worst attack."""

    def section(self, results: Results, study: str) -> Iterator[str]:
        """Yield verdict and figure, as Markdown."""
        figures, parts = Figures(results), list[str]()
        if not figures.runs:
            return
        for task in SETTINGS:
            honest, mean = figures.quality(task, SCALED, "none", 0.0), figures.worst(task, "none", MIDDLE)[0]
            best, rule = max((figures.worst(task, rule, MIDDLE)[0], rule) for rule in RULES)
            parts.append(f"{task} {mean:.0f} instead of {honest:.0f}, with {rule} {best:.0f}")
        named, attackers = figures.named(SCALED, MIDDLE)
        yield (
            f"**Verdict.** On demo data, {percent(MIDDLE)} of the clients attack. The worst of five attacks leaves these HR@20"
            f" in %: {'; '.join(parts)}. The norm bound names {named} of {attackers} attackers with updates of 100 times"
            f" the length. Honest clients named by mistake in {figures.runs} runs: {figures.total('mistaken')}."
        )
        words = "HR@20 by share of attackers, for five attacks and five rules on rules and sessions"
        yield f"![{words}](assets/{study}.svg)"

    def draw(self, results: Results, path: Path) -> None:
        """Write the figure: quality by share of attackers, one panel a task and attack."""
        figures = Figures(results)
        with drawn(path, 9.6, 4.6) as figure:
            grid = figure.subplots(len(SETTINGS), len(HARMFUL), sharex=True, sharey="row")
            shares = (0.0, *SHARES)
            for line, task in zip(grid, SETTINGS, strict=True):
                for axes, attack in zip(line, HARMFUL, strict=True):
                    for rule, colour in COLOURS.items():
                        quality = [figures.quality(task, attack, rule, share) for share in shares]
                        axes.plot(
                            [100 * s for s in shares],
                            quality,
                            "s-",
                            color=colour,
                            markersize=3,
                            markeredgewidth=0,
                            label=rule,
                        )
                    axes.set_ylim(bottom=0)
                    axes.set_xticks([100 * share for share in shares])
                    axes.grid(axis="y", color="#d9dde2", linewidth=0.6)
                    axes.spines[["top", "right"]].set_visible(False)
                    axes.tick_params(length=0, labelsize=8)
                line[0].set_ylabel(f"{task}: HR@20 in %", fontsize=9)
            for axes, attack in zip(grid[0], HARMFUL, strict=True):
                axes.set_title(ATTACKS[attack], fontsize=9)
            figure.supxlabel("attackers in %", fontsize=9)
            handles, labels = grid[0][0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside upper center", ncols=len(RULES), fontsize=8, frameon=False)


HEADLINE = RobustnessHeadline()
