"""Models that clients store of finished runs are found by their data."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from client.inference.model_choice import fit_model, has_own_parameters
from client.inference.stored_models import newest_stored
from client.session import MODEL
from client.training.comparison import MEASURED
from common.arrays import Arrays, add_prefix
from common.models import parameters
from common.tasks.traffic.properties import POOLED
from tests.support.hourly import HOURLY, take_part
from tests.support.weekly_sensor import weekly_config, weekly_learner


@pytest.mark.parametrize("hub", ["", "ward"])
def test_the_stored_model_is_the_shared_one_with_the_client_s_private_head(
    hub: str, tmp_path: Path, table: Path
) -> None:
    own = take_part(tmp_path / "state", table, "fedrep", "r1", hub=hub)
    stored = newest_stored("traffic", str(table), "", [tmp_path / "nowhere", tmp_path / "state"])
    assert stored is not None
    assert (stored.run, stored.config.method, stored.vocabulary) == ("r1", "fedrep", HOURLY)
    assert stored.model.keys() == own.keys()
    for name, values in own.items():
        np.testing.assert_array_equal(stored.model[name], values)


def test_the_shared_model_answers_where_the_client_chose_it(tmp_path: Path, table: Path) -> None:
    take_part(tmp_path / "state", table, "fedstl", "r1")
    [path] = (tmp_path / "state").glob(f"*/*/r1/{MEASURED}")
    for uses in (
        {"personalized model": True, "shared model": False},
        {"personalized model": False, "shared model": True},
    ):
        path.write_text(json.dumps({"uses": uses}))
        stored = newest_stored("traffic", str(table), "", [tmp_path / "state"])
        assert stored is not None
        common = [name for name in stored.shared if not name.startswith("head.")]  # the head stays with the client
        same = [np.array_equal(stored.model[name], stored.shared[name]) for name in common]
        assert all(same) is uses["shared model"]


def test_the_newest_or_the_named_run_of_these_data_and_this_task_is_found(tmp_path: Path, table: Path) -> None:
    roots = [tmp_path / "state"]
    for age, run in enumerate(("new", "old")):
        take_part(roots[0], table, "fedavg", run)
        [path] = roots[0].glob(f"*/*/{run}/{MODEL}")
        os.utime(path, (1e9 - age, 1e9 - age))
    models = {run: newest_stored("traffic", str(table), run, roots) for run in ("", "old", "other")}
    assert {name: stored and stored.run for name, stored in models.items()} == {"": "new", "old": "old", "other": None}
    assert newest_stored("rules", str(table), "", roots) is None
    elsewhere = table.with_name("other.csv")
    elsewhere.write_text(table.read_text() + "2024-01-22T00:00,north,1\n")
    assert newest_stored("traffic", str(elsewhere), "", roots) is None


def test_data_with_new_rows_at_the_same_path_find_their_client(tmp_path: Path, table: Path) -> None:
    own = take_part(tmp_path / "state", table, "fedrep", "r1")
    table.write_text(table.read_text() + "2024-01-22T00:00,north,1\n2024-01-22T00:00,south,1\n")
    stored = newest_stored("traffic", str(table), "", [tmp_path / "state"])
    assert stored is not None
    assert (stored.run, stored.client, stored.grown) == ("r1", "node", True)
    np.testing.assert_array_equal(stored.model["head.weight"], own["head.weight"])
    take_part(tmp_path / "state", table, "fedrep", "r2")
    again = newest_stored("traffic", str(table), "", [tmp_path / "state"])
    assert again is not None
    assert (again.run, again.grown) == ("r2", False)


def test_a_client_s_name_finds_its_runs_for_any_data(tmp_path: Path, table: Path) -> None:
    roots = [tmp_path / "state"]
    for name in ("ann", "bob"):
        take_part(roots[0], table, "fedavg", f"of-{name}", name)
    other = table.with_name("other.csv")
    other.write_text(table.read_text().replace("north", "east"))
    models = {name: newest_stored("traffic", str(other), "", roots, name) for name in ("ann", "bob", "eve", "")}
    runs = {name: stored and stored.run for name, stored in models.items()}
    assert runs == {"ann": "of-ann", "bob": "of-bob", "eve": None, "": None}


def test_statistics_for_a_cold_start_client_are_stored_apart_from_the_model(tmp_path: Path, table: Path) -> None:
    pooled = {name: np.full((2, 168, 1), end, np.float32) for name, end in zip(POOLED, (-1, 1), strict=True)}
    take_part(tmp_path / "state", table, "fedavg", "r1", statics=pooled)
    stored = newest_stored("traffic", str(table), "", [tmp_path / "state"])
    assert stored is not None
    assert stored.statics.keys() == set(POOLED)
    assert not stored.model.keys() & set(POOLED)
    np.testing.assert_array_equal(stored.statics[POOLED[1]], pooled[POOLED[1]])


def test_a_client_uses_the_cluster_with_the_lowest_loss_on_its_data() -> None:
    config = weekly_config("ifca")
    made = weekly_learner(config)
    good = parameters(made.module)  # the profile, exact already: a round of training leaves it as it is
    bad = {**good, "linear.bias": np.full(24, 5.0, np.float32)}
    chosen = fit_model(config, made, {**add_prefix("0", bad), **add_prefix("1", good)}, {})
    np.testing.assert_allclose(chosen["linear.bias"], 0, atol=1e-6)
    assert chosen.keys() == good.keys()


def test_private_layers_are_fitted_here_and_only_they() -> None:
    config = weekly_config("fedrep", model="paper", algorithm__fedrep__local_steps=2, algorithm__fedrep__head_steps=1)
    made = weekly_learner(config)
    trained = parameters(made.module)
    chosen = fit_model(config, made, trained, {})
    moved = {name for name, a in chosen.items() if not np.array_equal(a, trained[name])}
    assert moved == {"head.weight", "head.bias"}
    assert fit_model(weekly_config(model="paper"), made, trained, {}).keys() == trained.keys()


@pytest.mark.parametrize(
    ("method", "has_own"), [("fedavg", False), ("fedrep", True), ("ditto", True), ("ifca", True), ("fedstl", True)]
)
def test_methods_that_leave_parameters_with_the_client(method: str, has_own: bool) -> None:
    names: Arrays = {"0/head.weight": np.zeros(1), "0/lower.weight": np.zeros(1)}
    assert has_own_parameters(weekly_config(method), names) == has_own
