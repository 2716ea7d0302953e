"""Stored rows of the ratings study, by table and data set."""

from dataclasses import dataclass

from studies.harness.experiment import Experiment
from studies.harness.results import Results
from studies.harness.row import Row, RowKey, in_order
from studies.ratings.experiments import (
    BASELINES,
    EXPERIMENTS,
    OWN,
    WIDE,
    baseline_protocol,
    uses_set_constants,
)
from studies.ratings.noise import NOISES, epsilon_of_run, mechanism_of
from studies.ratings.sets import Setting


@dataclass(frozen=True)
class StoredRows:
    """Stored rows of one data set."""

    setting: Setting
    results: Results

    def protocol(self, name: str) -> dict[str, Row]:
        """Return short name -> row of a protocol."""
        return self.results.rows_of(self.setting.key, name)

    def rows(self, protocol: str) -> list[tuple[Experiment, Row]]:
        """Return experiments of a table with their rows, those without noise last; then by mechanism and ε."""
        found = self.protocol(protocol)
        return sorted(((one, found[one.key]) for one in self.experiments(protocol) if one.key in found), key=_order)

    def experiments(self, protocol: str) -> list[Experiment]:
        """Return the experiments of a table."""
        return [one for one in EXPERIMENTS if one.protocol == protocol]

    def baselines(self, share: float) -> dict[str, Row]:
        """Return the baselines that see the same training ratings as rows with that share held out."""
        return in_order(self.protocol(baseline_protocol(share)), BASELINES)

    def own_mean(self, share: float) -> Row:
        """Return the baseline of rows with that share held out; empty if it was not measured."""
        return self.baselines(share).get(OWN) or Row(RowKey(self.setting.key, baseline_protocol(share), OWN))

    def uniform(self, one: Experiment) -> Row | None:
        """Return the row of the even split under the same noise; None for itself and without noise."""
        key = f"uniform{one.key.removeprefix(str(one.settings['method'])).replace(WIDE, '')}"
        return self.protocol(one.protocol).get(key) if mechanism_of(one) and key != one.key else None


def _order(entry: tuple[Experiment, Row]) -> tuple[bool, int, float, bool]:
    """Return the place of a row: those without noise last, then by mechanism and ε."""
    one = entry[0]
    return (
        not mechanism_of(one),
        [*NOISES, ""].index(mechanism_of(one)),
        epsilon_of_run(one),
        uses_set_constants(one),
    )


def noise_of(one: Experiment) -> str:
    """Return the noise of a row in words."""
    return f"{NOISES[mechanism_of(one)]}, ε = {epsilon_of_run(one):g}" if mechanism_of(one) else "none"
