"""Runs whose clients send item ids: the server step is the mean over each row's senders."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from client.owner.policy import Policy
from client.privacy.simulation import in_memory
from client.session import Session
from client.state import MemoryStore
from client.tasks.learner import Learner
from client.tasks.ratings.data.generator import demo_raters
from client.tasks.ratings.data.raters import Rater, Ratings
from client.tasks.registry import build_learner
from client.training.participant import Participant
from common.arrays import Arrays, sha256
from common.config.parse import parse
from common.config.run import RunConfig
from common.models import parameters
from common.options import Scalar
from common.tasks.ratings.vocabulary import demo_products
from common.tasks.vocabulary import Vocabulary
from common.wire.messages import TrainReply
from common.wire.sparse_rows import ROWS, VALUES, compress, expand_reply
from deploy.simulation.grid import InProcessGrid, simulate
from server.record.folder import RunDirectory
from server.record.result import Result
from server.run import run
from tests.support.build import task_model
from tests.support.plugins import install, noiseless
from tests.support.sensors import rounds_of

PRODUCTS = demo_products()
RATERS = (*demo_raters(0, 3, seed=0), Rater("rater-without", np.zeros(0, np.int64), np.zeros(0)))


@pytest.fixture(autouse=True)
def _noiseless_planner(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, noiseless())


def config(**options: Scalar) -> RunConfig:
    flat: dict[str, Scalar] = {"method": "fedavg", "task": "ratings", "model": "paper", "rounds": 1, "run-id": "toy"}
    return parse(flat | {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()})


def trained(folder: Path, *raters: int, **options: Scalar) -> tuple[Result, Arrays, Arrays]:
    """Return the result, the first model and the last model of a run of these raters."""
    chosen = Ratings(tuple(RATERS[k] for k in raters), PRODUCTS)
    result = simulate(config(federation__min_clients=1, **options), chosen, folder, noise_seed=0)
    return result, parameters(task_model(config(**options), PRODUCTS)), RunDirectory(folder, "toy").load_model()[0]


def test_rows_change_by_the_mean_over_their_raters(tmp_path: Path) -> None:
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


def test_with_the_ids_of_all_items_it_is_the_dense_run(tmp_path: Path) -> None:
    number = len(PRODUCTS.items)
    everything: dict[str, Scalar] = {"tasks__ratings__items": "paper", "tasks__ratings__pseudo_items": number}
    _, _, named = trained(tmp_path / "named", 0, 1, 2, **everything)
    _, _, dense = trained(tmp_path / "dense", 0, 1, 2)
    assert sha256(named) == sha256(dense)


def test_a_planned_run_with_noise_sends_ids_and_states_it(tmp_path: Path) -> None:
    noise: dict[str, Scalar] = {"privacy__unit": "client", "method": "bgtplanner", "rounds": 4}
    noise["tasks__ratings__items"] = "paper"
    result, start, end = trained(tmp_path, 0, 1, 2, **noise)
    assert result.status == "completed"
    assert all(r.answered == 3 for r in rounds_of(tmp_path))
    assert result.privacy.neighbours == "replace-one-same-items"
    assert result.privacy.uncovered[0].startswith("item ids:")
    moved = np.abs(end["items"] - start["items"]).sum(1) > 0
    assert 0 < moved.sum() < len(moved), "no client sent the remaining ids"


def test_the_planner_s_context_is_of_the_item_ids(tmp_path: Path) -> None:
    """If every client sends every id, M_t is all ones: one singular value, √(N·I)."""
    everything: dict[str, Scalar] = {"tasks__ratings__items": "paper", "method": "bgtplanner", "rounds": 2}
    everything["tasks__ratings__pseudo_items"] = number = len(PRODUCTS.items)
    trained(tmp_path, 0, 1, 2, privacy__unit="client", **everything)
    latest = RunDirectory(tmp_path, "toy").checkpoints.load_latest()
    assert latest is not None
    context = latest.groups["planner_seen"]["context"]
    np.testing.assert_allclose(context, [np.sqrt(3 * number), 0, 0, 0, 0], atol=1e-6)


SGD: dict[str, Scalar] = {"method": "noiseless", "rounds": 3, "tasks__ratings__items": "paper"}
"""Planned run without noise; updates are otherwise sent as their non-zero rows."""


def test_a_client_without_ratings_sends_pseudo_items_only(tmp_path: Path) -> None:
    """Its weights do not change: a table of zeros, sent in full, with rows of the item table."""
    result, start, end = trained(tmp_path, 0, 1, 3, **SGD)
    assert result.status == "completed"
    assert [(r.answered, r.refused) for r in rounds_of(tmp_path)] == [(3, {})] * 3
    assert np.abs(end["weight"] - start["weight"]).max() > 0
    latest = RunDirectory(tmp_path, "toy").checkpoints.load_latest()
    assert latest is not None
    assert latest.groups["planner_seen"].keys() >= {"context"}


Update = Callable[[TrainReply], TrainReply]


def whole(reply: TrainReply) -> TrainReply:
    """Send full tables."""
    return expand_reply(reply, parameters(task_model(config(), PRODUCTS)))


def beside(reply: TrainReply) -> TrainReply:
    """Send row ids of the weights too."""
    weight = compress({"weight": np.zeros_like(reply.update["weight"])})
    return replace(reply, update={**{n: a for n, a in reply.update.items() if n != "weight"}, **weight})


def elsewhere(reply: TrainReply) -> TrainReply:
    """Send row ids of a table that the model does not have."""
    renamed = {n.replace("items", "people"): a for n, a in reply.update.items()}
    assert {"people" + ROWS, "people" + VALUES} < renamed.keys()
    return replace(reply, update=renamed)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (whole, "row ids of 0 tables, not of one"),
        (beside, "row ids of 2 tables, not of one"),
        (elsewhere, "update: array 'people': rows belong to no table of the model"),
    ],
)
def test_row_ids_of_other_tables_are_a_failure_of_the_client(change: Update, reason: str, tmp_path: Path) -> None:
    class Changed(Session):
        def release(self, participant: Participant, work: Callable[[], TrainReply]) -> TrainReply:
            return change(super().release(participant, work))

    def learner(config: RunConfig, vocabulary: Vocabulary, k: int) -> Learner:
        return build_learner(config, Ratings((RATERS[k],), PRODUCTS))

    sessions: dict[int, Session] = {}
    for k, kind in enumerate((Session, Changed, Session)):
        own = partial(learner, k=k)
        sessions[k + 1] = kind(f"client-{k}", own, MemoryStore(), in_memory(Policy()))
    configuration = config(federation__min_clients=1, federation__wait=0.1, **SGD)
    result = run(InProcessGrid(sessions, 1), configuration, tmp_path)
    rounds = rounds_of(tmp_path)
    assert (result.status, result.rounds_done) == ("completed", 3)
    assert [(r.asked, r.answered, sorted(r.refused)) for r in rounds] == [(3, 2, ["client-1"])] * 3
    assert all(reason in r.refused["client-1"] for r in rounds)
