"""Runs whose clients name items: the server's step is, row by row, the mean over who sent the row."""

from pathlib import Path

import numpy as np

from client.data.ratings.generator import demo_raters
from client.data.ratings.raters import Dataset
from common.arrays import Arrays, sha256
from common.config import RunConfig, Scalar, parse
from common.models import build_model, parameters
from common.tasks.ratings_demo import demo_products
from deploy.simulation import simulate
from server.artifacts import RunDirectory
from server.events import Result
from tests.sensors import rounds_of

PRODUCTS = demo_products()
RATERS = demo_raters(0, 3, seed=0)


def config(**options: Scalar) -> RunConfig:
    flat: dict[str, Scalar] = {"method": "fedavg", "task": "ratings", "model": "paper", "rounds": 1, "run-id": "toy"}
    return parse(flat | {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()})


def trained(folder: Path, *raters: int, **options: Scalar) -> tuple[Result, Arrays, Arrays]:
    """Result, first model and last model of a run of these raters."""
    chosen = Dataset(tuple(RATERS[k] for k in raters), PRODUCTS)
    result = simulate(config(federation__min_clients=1, **options), chosen, folder, noise_seed=0)
    return result, parameters(build_model(config(**options), PRODUCTS)), RunDirectory(folder, "toy").load_model()[0]


def test_rows_move_by_the_mean_of_those_who_rated_and_others_stay(tmp_path: Path) -> None:
    alone = []
    for k in range(3):
        _, start, end = trained(tmp_path / str(k), k)
        alone.append({name: end[name] - start[name] for name in end})
    named: dict[str, Scalar] = {"tasks__ratings__items": "paper", "tasks__ratings__pseudo_items": 0}
    _, start, end = trained(tmp_path / "all", 0, 1, 2, **named)
    steps = np.array([one["items"] for one in alone])
    rated = np.abs(steps).sum(2) > 0
    expected = steps.sum(0) / np.maximum(rated.sum(0), 1)[:, None]
    np.testing.assert_allclose(end["items"] - start["items"], expected, atol=1e-6)
    assert (rated.sum(0) == 1).any()
    assert (rated.sum(0) > 1).any()
    np.testing.assert_allclose(end["weight"] - start["weight"], np.mean([o["weight"] for o in alone], 0), atol=1e-6)


def test_with_every_item_named_it_is_the_dense_run(tmp_path: Path) -> None:
    number = len(PRODUCTS.items)
    everything: dict[str, Scalar] = {"tasks__ratings__items": "paper", "tasks__ratings__pseudo_items": number}
    _, _, named = trained(tmp_path / "named", 0, 1, 2, **everything)
    _, _, dense = trained(tmp_path / "dense", 0, 1, 2)
    assert sha256(named) == sha256(dense)


def test_a_planned_run_with_noise_names_items_and_says_so(tmp_path: Path) -> None:
    noise: dict[str, Scalar] = {"privacy__unit": "client", "method": "bgtplanner", "rounds": 4}
    noise["tasks__ratings__items"] = "paper"
    result, start, end = trained(tmp_path, 0, 1, 2, **noise)
    assert result.status == "completed"
    assert all(r.answered == 3 for r in rounds_of(tmp_path))
    assert result.privacy.neighbours == "replace-one-same-items"
    assert result.privacy.uncovered[0].startswith("item ids:")
    moved = np.abs(end["items"] - start["items"]).sum(1) > 0
    assert 0 < moved.sum() < len(moved), "nobody drew the others"


def test_the_planner_sees_which_items_were_named(tmp_path: Path) -> None:
    """M_t of a round in which everybody names every item is all ones: one singular value, √(N·I)."""
    everything: dict[str, Scalar] = {"tasks__ratings__items": "paper", "method": "bgtplanner", "rounds": 2}
    everything["tasks__ratings__pseudo_items"] = number = len(PRODUCTS.items)
    trained(tmp_path, 0, 1, 2, privacy__unit="client", **everything)
    latest = RunDirectory(tmp_path, "toy").load_latest()
    assert latest is not None
    context = latest.groups["planner_seen"]["context"]
    np.testing.assert_allclose(context, [np.sqrt(3 * number), 0, 0, 0, 0], atol=1e-6)
