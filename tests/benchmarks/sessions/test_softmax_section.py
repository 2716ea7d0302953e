"""Section on sampled softmax: rows are compared at equal rounds and by seed, with the cost of both."""

import json
from pathlib import Path

from benchmarks.harness.results import Results
from benchmarks.harness.row import RowKey, Trial
from benchmarks.sessions.softmax_section import section


def results_of(**rows: dict[int, dict[int, float]]) -> Results:
    results = Results()
    for key, trials in rows.items():
        row = results.row(RowKey("gowalla", "default", key.replace("_", "-")))
        row.about.title = key
        for seed, curve in trials.items():
            row.trials[seed] = Trial(curve={number: {"hr20": value} for number, value in curve.items()})
    return results


def test_rows_are_compared_at_the_last_round_of_the_sampled_one(tmp_path: Path) -> None:
    full = {0: {50: 0.5, 100: 0.7}, 1: {50: 0.4, 100: 0.7}, 2: {50: 0.1, 100: 0.1}}
    results = results_of(fedga=full, fedga_sampled={0: {25: 0.1, 50: 0.49}, 1: {25: 0.1, 50: 0.42}})
    cost = tmp_path / "cost.json"
    row = {"loss": "full", "items": 11000, "clients": 100, "answered": 100, "kb_up_per_client": 2270.4}
    cost.write_text(json.dumps({"rows": [{**row, "cpu_seconds_per_round": 13.04, "peak_mb": 5400.2}]}), "utf-8")
    accuracy, costs = section(results, cost)
    assert "| gowalla | fedga | 50 | 2 | 45.0 | 45.5 | -1.00, +2.00 |" in accuracy
    assert "| full | 11,000 | 100 of 100 | 2,270 | 13.04 | 5,400 |" in costs
    assert len([*section(results, tmp_path / "none")]) == 1


def test_without_rows_there_is_no_section(tmp_path: Path) -> None:
    assert [*section(results_of(fedga={0: {100: 0.7}}), tmp_path / "none")] == []
