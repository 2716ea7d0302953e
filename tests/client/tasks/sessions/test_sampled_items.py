"""Sampled softmax: the gathered items, the estimate of the full loss, and its gradients."""

import numpy as np
import pytest
import torch
from torch.func import grad

from client.tasks.learner import GatheredBatch
from client.tasks.sessions.data.visitors import Visitor, as_clicks
from client.tasks.sessions.learner import WEIGHTS, SessionsLearner
from client.training.stacks import Tensors, row, stack
from common.config.parse import parse
from common.models import parameters, tensors
from common.tasks.sessions.vocabulary import Items
from common.wire.messages import TrainRequest
from tests.support.build import learner_of

ITEMS = Items(items=tuple(f"item {j}" for j in range(40)))
OWN = (0, 3, 5, 9, 17, 38)
VISITOR = Visitor("ann", tuple(as_clicks(s) for s in ([5, 9, 3, 5], [38, 17], [0, 9, 0], [3, 38, 5])), ())
TABLES = {"default": "network.embedding.weight", "paper": "embedding.weight"}


def learner(model: str = "paper", network: str = "srgnn", negatives: int = 8) -> SessionsLearner:
    settings = {"hidden": 4, "network": network, "loss": "sampled", "negatives": negatives, "blend-share": 0.5}
    flat = {f"tasks.sessions.{key}": value for key, value in settings.items()}
    one: SessionsLearner = learner_of(
        parse({"method": "fedga", "task": "sessions", "model": model, **flat}), ITEMS, [VISITOR]
    )
    return one


def gather(of: SessionsLearner, seed: int = 0) -> GatheredBatch:
    request = TrainRequest(1, "toy:0", parameters(of.module))
    gathered = of.gather(request, torch.Generator().manual_seed(seed))
    assert gathered is not None
    return gathered


def rows_of(params: Tensors, gathered: GatheredBatch) -> Tensors:
    return {n: p[torch.from_numpy(gathered.rows[n])] if n in gathered.rows else p for n, p in params.items()}


@pytest.mark.parametrize("model", ["default", "paper"])
def test_own_items_and_so_many_others_are_gathered(model: str) -> None:
    of = learner(model)
    gathered = gather(of)
    assert [*gathered.rows] == [TABLES[model]]
    rows = gathered.rows[TABLES[model]]
    assert (np.diff(rows) > 0).all()
    assert len(rows) == 1 + len(OWN) + 8
    assert {0, *(j + 1 for j in OWN)} <= {*rows.tolist()}
    weights = dict(zip((rows[1:] - 1).tolist(), gathered.batch[WEIGHTS].tolist(), strict=True))
    assert all(weights.pop(j) == 1 for j in OWN)
    assert [*weights.values()] == pytest.approx([(len(ITEMS.items) - len(OWN)) / 8] * 8)
    assert gather(of).rows[TABLES[model]].tolist() == rows.tolist()
    assert gather(of, 1).rows[TABLES[model]].tolist() != rows.tolist()


@pytest.mark.parametrize(
    ("model", "network"), [("paper", "srgnn"), ("paper", "tagnn"), ("paper", "tagnn_concat"), ("default", "srgnn")]
)
def test_over_all_items_it_is_the_full_loss_with_its_gradients(model: str, network: str) -> None:
    of = learner(model, network, negatives=len(ITEMS.items))
    params, gathered = tensors(parameters(of.module)), gather(of)
    whole = of.batch(TrainRequest(1, "toy:0", {}))
    small = rows_of(params, gathered)
    torch.testing.assert_close(of.loss(small, gathered.batch, {}), of.loss(params, whole, {}))
    full, found = grad(of.loss)(params, whole, {}), grad(of.loss)(small, gathered.batch, {})
    for name, expected in full.items():
        torch.testing.assert_close(found[name], rows_of({name: expected}, gathered)[name], atol=1e-6, rtol=1e-4)


def test_the_weighted_sum_estimates_that_over_all_items() -> None:
    scores = torch.rand(len(ITEMS.items), generator=torch.Generator().manual_seed(0)).exp()
    of = learner()
    sums = []
    for seed in range(2000):
        gathered = gather(of, seed)
        items = torch.from_numpy(gathered.rows[TABLES["paper"]][1:] - 1)
        sums.append(float((gathered.batch[WEIGHTS] * scores[items]).sum()))
    assert np.mean(sums) == pytest.approx(float(scores.sum()), rel=0.005)
    assert np.std(sums) > 0.5


@pytest.mark.parametrize("model", ["default", "paper"])
def test_padding_to_a_larger_client_weighs_nothing(model: str) -> None:
    of = learner(model)
    params, small, large = tensors(parameters(of.module)), gather(of), gather(learner(model, negatives=20))
    padded = stack([rows_of(params, small), rows_of(params, large)])
    batch = row(stack([small.batch, large.batch]), 0)
    loss = of.loss(rows_of(params, small), small.batch, {})
    torch.testing.assert_close(of.loss(row(padded, 0), batch, {}), loss)
    gradient = grad(of.loss)(row(padded, 0), batch, {})[TABLES[model]]
    assert torch.isfinite(gradient).all()
    assert not gradient[len(small.rows[TABLES[model]]) :].any()


def test_a_full_loss_gathers_nothing() -> None:
    of = learner_of(parse({"method": "fedga", "task": "sessions"}), ITEMS, [VISITOR])
    assert of.gather(TrainRequest(1, "toy:0", {}), torch.Generator()) is None
