"""A step that encodes few of a market's items equals a step that encodes all of them."""

from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from client.trainers.pfgnn import MarketObjective, StepDraw
from client.training.stacks import Tensors
from common.methods.pfgnn import PFGNN

N, D, K, C, B = 200, 6, 4, 3, 10


@dataclass(frozen=True)
class Ring:
    """Market of items in a ring."""

    features: Tensor
    propagated: Tensor
    pairs: Tensor

    def triples(self, generator: torch.Generator) -> Tensor:
        item = torch.randint(N, (B,), generator=generator)
        return torch.stack([item, (item + 1) % N, (item + 3) % N], dim=1)


def ring() -> Ring:
    x = torch.randn(N, D, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return Ring(x, (x + x.roll(1, 0)) / 2, torch.stack([torch.arange(N), (torch.arange(N) + 1) % N], dim=1))


def leaves(*, clusters: bool) -> Tensors:
    source = torch.Generator().manual_seed(7)
    shapes = {"phi.mean": (D, K), "phi.log_variance": (D, K), "alpha": (D, K)} | ({"kappa": (C, K)} if clusters else {})
    drawn = {n: torch.randn(shape, generator=source, dtype=torch.float64) for n, shape in shapes.items()}
    drawn["theta"] = torch.tensor([1.0, 0.0], dtype=torch.float64)
    return {n: t.requires_grad_() for n, t in drawn.items()}


def compute_gradients(objective: MarketObjective, params: Tensors, draw: StepDraw) -> Tensors:
    """Return Eq 16 and its gradient."""
    xi = torch.ones(C, K, dtype=torch.float64) if "kappa" in params else torch.zeros(0)
    loss = objective.outer(params, objective.encode(params, draw), draw, xi)
    gradients = torch.autograd.grad(loss, list(params.values()), allow_unused=True, materialize_grads=True)
    return {"loss": loss.detach(), **dict(zip(params, gradients, strict=True))}


@pytest.mark.parametrize("clusters", [False, True])
def test_encoding_only_the_items_of_a_step_changes_nothing(clusters: bool) -> None:
    objective, params = MarketObjective(PFGNN(rows=8), ring()), leaves(clusters=clusters)
    for seed in range(3):
        draw = objective.draw(K, torch.Generator().manual_seed(seed))
        draw = replace(draw, epsilon=draw.epsilon.double())
        named = sorted({*draw.triples.flatten().tolist(), *draw.rows.tolist()})
        assert draw.seen.tolist() == named
        assert draw.seen[draw.places(draw.triples)].equal(draw.triples)
        few, all_of_them = (
            compute_gradients(objective, params, draw),
            compute_gradients(objective, params, replace(draw, seen=torch.arange(N))),
        )
        for name, values in all_of_them.items():
            torch.testing.assert_close(few[name], values, rtol=1e-9, atol=1e-12, msg=name)
        assert few["phi.log_variance"].abs().sum() > 0


@pytest.mark.parametrize("rows", [0, N - 10, N])
def test_a_step_with_most_items_encodes_all(rows: int) -> None:
    objective = MarketObjective(PFGNN(rows=rows), ring())
    assert objective.exact == (rows in (0, N))
    assert objective.draw(K, torch.Generator().manual_seed(0)).seen.equal(torch.arange(N))
