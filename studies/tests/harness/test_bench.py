"""A bench tunes on validation data, trains at the chosen point, and reads results off real runs."""

from dataclasses import replace
from pathlib import Path

import pytest

from client.data.read import read_all
from studies.harness.bench import Bench, final_metrics
from studies.harness.experiment import Experiment, label, method_options, task_options
from studies.harness.results import Results
from studies.harness.row import RowKey, Trial
from studies.harness.store import Store
from studies.harness.study import Selection
from studies.harness.tuning import Tuning

KEY = RowKey("demo", "default", "fedavg")
POINTS = tuple(method_options("fedavg", {"lr": rate}) for rate in (1e-6, 0.3))
SETTINGS = {"method": "fedavg", "task": "rules", "rounds": 3, "evaluate-every": 1, "federation.min-clients": 1}
FEDAVG = Experiment("fedavg", "FedAvg", {**SETTINGS, "training.optimizer": "sgd"}, POINTS, seeds=2)


def bench(folder: Path, tuning: Tuning | None = None) -> Bench:
    return Bench("demo", lambda: read_all("rules", "demo:0-40"), Store(folder, Results()), final_metrics, tuning)


def tuning(*, chooses_round: bool) -> Tuning:
    held_out = task_options("rules", {"validation-share": 0.2})
    return Tuning("loss", held_out, chooses_round=chooses_round)


def test_a_point_as_text() -> None:
    assert label({"training.lr": 3, "training.clip-norm": 0.2}) == "lr 3, clip-norm 0.2"
    assert label({}) == "not tuned"


@pytest.mark.parametrize("chooses_round", [False, True])
def test_the_point_with_the_least_validation_loss_is_trained(chooses_round: bool, tmp_path: Path) -> None:
    made = bench(tmp_path, tuning(chooses_round=chooses_round))
    made.run([FEDAVG])
    row = made.store.results.rows[KEY]
    assert row.about.chosen["point"] == "lr 0.3"
    assert row.about.grid.keys() == {"lr 1e-06", "lr 0.3"}
    assert row.trials.keys() == {0, 1}
    assert row.about.config["training.lr"] == 0.3
    assert (row.about.chosen.get("round") == 2) is chooses_round  # the last round is measured on test data
    assert row.about.config["rounds"] == (2 if chooses_round else 3)
    assert not [path for path in tmp_path.iterdir() if path.is_dir()], "folders of runs are removed"


def test_a_stored_choice_is_not_tuned_again(tmp_path: Path) -> None:
    made = bench(tmp_path, tuning(chooses_round=False))
    made.store.results.row(KEY).about.chosen = {"point": "lr 1e-06"}
    assert made.choose(FEDAVG) == POINTS[0]


def test_rows_that_are_not_selected_are_left_out(tmp_path: Path) -> None:
    made = replace(bench(tmp_path), selection=Selection(only=("default/walk",), most=2))
    calls: list[tuple[str, int]] = []

    def compute(key: str, seed: int) -> Trial:
        calls.append((key, seed))
        return Trial({"auc": 0.5})

    for _ in range(2):
        made.run([FEDAVG])
        made.run_baselines({"walk": "the walk", "degree": "degree"}, 3, compute)
        made.describe(lambda: Trial({"homes": 40}))
    assert calls == [("walk", 0), ("walk", 1)]
    rows = made.store.results.rows_of("demo")
    assert rows.keys() == {"walk", "data"}
    assert rows["walk"].title == "the walk"
    assert rows["data"].only == {"homes": 40}


def test_a_run_that_fails_yields_its_reason(tmp_path: Path) -> None:
    settings = {**SETTINGS, "training.optimizer": "sgd", "training.lr": 1e30}
    trial = bench(tmp_path).train("failing", {**settings, "seed": 0})
    assert trial.failure != ""
    assert trial.metrics == {}


def test_the_best_of_a_curve() -> None:
    curve = {10: {"hr20": 0.2}, 20: {"hr20": 0.5}, 30: {"hr20": 0.4}}
    assert Tuning("hr20", higher_is_better=True).best_of(curve) == {"hr20": 0.4}
    chosen = Tuning("hr20", higher_is_better=True, chooses_round=True).best_of(curve)
    assert chosen == {"hr20": 0.5, "round": 20}
    assert Tuning("hr20").best_of({}) == {}
