"""Verdicts of the studies follow from the figures."""

import pytest

from common.errors import DataError
from studies.harness.headline import Entry, Headline
from studies.harness.results import Results
from studies.harness.row import Row, RowKey, Trial

DEFAULT, OTHER = (
    Entry("default", "set/default/default", "hr20", "default"),
    Entry("own mean", "set/default/own", "hr20", "alone"),
)
HEADLINE = Headline("rules", "a set", "HR@20", higher=True, digits=2, entries=(OTHER, DEFAULT))


def results(*other: float) -> Results:
    def row(key: str, values: tuple[float, ...]) -> Row:
        return Row(RowKey("set", "default", key), trials={seed: Trial({"hr20": v}) for seed, v in enumerate(values)})

    found = row("default", (0.50, 0.52, 0.51)), row("own", other)
    return Results(rows={one.key: one for one in found})


@pytest.mark.parametrize(
    ("other", "judged"),
    [
        ((0.40, 0.43, 0.41), "better than"),
        ((0.60, 0.63, 0.61), "worse than"),
        ((0.45, 0.57, 0.50), "level with"),
        ((0.51,), "level with"),
        ((0.30,), "better than"),
    ],
)
def test_a_difference_of_two_standard_errors_is_one(other: tuple[float, ...], judged: str) -> None:
    assert HEADLINE.judge(results(*other), OTHER) == judged


def test_smaller_errors_are_better() -> None:
    lower = Headline("traffic", "a set", "MSE", higher=False, digits=2, entries=(OTHER, DEFAULT))
    assert lower.judge(results(0.60, 0.63, 0.61), OTHER) == "better than"


def test_the_mean_over_clients_counts_seeds_that_all_have() -> None:
    row = Row(RowKey("set", "default", "own"))
    row.trials[0] = Trial(clients={"a": {"hr20": 0.2}, "b": {"hr20": 0.4}})
    row.trials[1] = Trial(clients={"a": {"hr20": 0.2}})
    entry = Entry("own", "set/default/own", "hr20", clients=("a", "b"))
    assert entry.values(Results(rows={row.key: row})) == pytest.approx({0: 0.3})


def test_a_row_that_is_not_measured_is_named() -> None:
    with pytest.raises(DataError, match=r"needs row set/paper/x, which is not stored; .* --sets set --only paper/x"):
        Entry("x", "set/paper/x", "hr20").values(Results())
