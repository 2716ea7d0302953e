"""Section on summed rules: rows are compared by seed, on sets of which both were run."""

from studies.harness.results import Results
from studies.harness.row import NO_SEED, RowKey, Trial
from studies.sessions.summed_section import section


def results_of(**rows: dict[int, float]) -> Results:
    results = Results()
    results.row(RowKey("gowalla", "default", "data")).trials[NO_SEED] = Trial({"items": 2000, "clients": 1000})
    for key, hits in rows.items():
        row = results.row(RowKey("gowalla", "default", key.replace("_", "-")))
        row.trials = {seed: Trial({"hr20": value}) for seed, value in hits.items()}
    return results


def test_rows_are_compared_by_seed() -> None:
    text, absent = section(results_of(default={0: 0.8, 1: 0.7, 2: 0.1}, default_counts={0: 0.82, 1: 0.69}))
    assert "| gowalla | 2,000 | 1,000 | 100 | 2 | 75.0 | 75.5 | +2.00, -1.00 | +0.50 |" in text
    assert absent == "Not run yet: gowalla-1000, yoochoose64-1000, diginetica-1000."


def test_without_both_rows_there_is_no_section() -> None:
    assert [*section(results_of(default={0: 0.8}))] == []
