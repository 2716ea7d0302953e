"""Section on sampled softmax: rows are compared at equal rounds, at equal bytes and by seed, with the cost of both."""

import json
from pathlib import Path

from studies.harness.results import Results
from studies.harness.row import RowKey, Trial
from studies.sessions.softmax_section import section


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
    assert "| gowalla | fedga | rounds | 50 | 50 | 45.0 | 45.5 | -1.00, +2.00 |" in accuracy
    assert "| full | 11,000 | 100 of 100 | 2,270 | 13.04 | 5,400 |" in costs
    assert len([*section(results, tmp_path / "none")]) == 1


def test_at_equal_bytes_the_full_row_is_read_at_its_own_end(tmp_path: Path) -> None:
    results = results_of(fedga_bytes={0: {19: 0.3, 20: 0.25}}, fedga_sampled={0: {40: 0.5, 50: 0.49}})
    for row, point, megabytes in zip(results.rows.values(), ("lr 1", "lr 2"), (1999.6, 1990.4), strict=True):
        row.about.chosen = {"point": point}
        row.trials[0].curve[max(row.trials[0].curve)]["megabytes_up"] = megabytes
    (accuracy,) = section(results, tmp_path / "none")
    assert (
        "| gowalla | fedga_bytes | bytes | 20 | 50 | 2,000 | 1,990 | lr 1 | lr 2 | 25.0 | 49.0 | +24.00 |" in accuracy
    )


def test_without_rows_there_is_no_section(tmp_path: Path) -> None:
    assert [*section(results_of(fedga={0: {100: 0.7}}), tmp_path / "none")] == []
