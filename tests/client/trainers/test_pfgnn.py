"""Algorithm 2 of PF-GNN+ against independent implementations (algorithms.md §5.10)."""

import numpy as np
import torch
from torch import Tensor

from client.trainers.pfgnn import PFGNNTrainer
from client.training.stacks import Tensors
from client.training.steps import initialize_moments
from common.methods.pfgnn import PFGNN
from tests.support.rings import K, N, ring, run, start


def run_reference(begin: Tensors, steps: int, lambda_w: float, lambda_s: float, lr: float, v0: float) -> Tensors:
    """Run Algorithm 2 with dense arrays and without the code under test."""
    market, source = ring(), torch.Generator().manual_seed(3)
    p = {n: t[0].clone() for n, t in begin.items()}
    adjacency = torch.zeros(N, N)
    for a, b in market.pairs.tolist():
        adjacency[a, b] = adjacency[b, a] = 1
    for _ in range(steps):
        triples, epsilon = market.triples(source), torch.randn(N, K, generator=source)

        def pieces(q: Tensors, triples: Tensor = triples, epsilon: Tensor = epsilon) -> tuple[Tensor, Tensor]:
            """Return (Eq 15, ξ)."""
            m, log_v = market.propagated @ q["phi.mean"], market.propagated @ q["phi.log_variance"] + np.log(v0)
            z = m + log_v.exp().sqrt() * epsilon
            score = q["theta"][0] * z @ z.T + q["theta"][1]
            u, v, w = triples.T
            error = -torch.log(torch.sigmoid(score[u, v] - score[u, w])).mean()
            prior = torch.log(1 + (market.features @ q["alpha"]).exp()) + 1e-4
            kl = 0.5 * ((log_v.exp() + m**2) / prior - 1 + prior.log() - log_v).sum()
            kernel = 1 / (1 + ((m[:, None] - q["kappa"]) ** 2).sum(2))
            c = kernel / kernel.sum(1, keepdim=True)
            xi = c.T @ m
            back = c @ torch.linalg.inv(c.T @ c) @ xi
            expected = torch.sigmoid(q["theta"][0] * back @ back.T + q["theta"][1])
            return error + kl / N**2 + (adjacency - expected).square().sum() / N**2, xi

        own = {n: p[n].clone().requires_grad_() for n in ("theta", "alpha")}
        gradients = torch.autograd.grad(pieces({**p, **own})[0], list(own.values()))
        p |= {n: p[n] - lr * g for n, g in zip(own, gradients, strict=True)}
        shared = {n: p[n].clone().requires_grad_() for n in ("phi.mean", "phi.log_variance", "kappa")}
        inner, xi = pieces({**p, **shared})
        outer = inner + lambda_s * (xi - begin["xi"][0]).square().sum() / N**2
        for n, g in zip(shared, torch.autograd.grad(outer, list(shared.values())), strict=True):
            pull = lambda_w if n.startswith("phi") else 0.0
            p[n] = (p[n] - lr * g + 2 * lr * pull * begin[n][0]) / (1 + 2 * lr * pull)
    m = market.propagated @ p["phi.mean"]
    kernel = 1 / (1 + ((m[:, None] - p["kappa"]) ** 2).sum(2))
    return {**p, "xi": (kernel / kernel.sum(1, keepdim=True)).T @ m}


def test_local_steps_are_algorithm_2() -> None:
    begin = start()
    ours = run(begin, steps=3, lambda_w=0.7, lambda_s=0.05, start_variance=0.3).params
    expected_params = run_reference(begin, 3, 0.7, 0.05, 0.1, 0.3)
    assert ours.keys() == expected_params.keys()
    for n, t in expected_params.items():
        torch.testing.assert_close(ours[n][0], t, rtol=1e-4, atol=1e-5, msg=n)
        assert not torch.allclose(ours[n], begin[n]), f"{n} moves"


def test_without_proximal_terms_a_market_trains_alone() -> None:
    begin, market, source = start(plus=False), ring(), torch.Generator().manual_seed(3)
    ours = run(begin, optimizer="adam", lr=0.02, lambda_w=0.0, plus=False, divergence=0.0, start_variance=0.2).params
    p = {n: t[0].clone().requires_grad_() for n, t in begin.items()}
    turns = [
        torch.optim.Adam([p[n] for n in names], lr=0.02) for names in (["theta"], ["phi.mean", "phi.log_variance"])
    ]
    for _ in range(5):
        (u, v, w), epsilon = market.triples(source).T, torch.randn(N, K, generator=source)
        for optimizer in turns:
            deviation = (0.2 * (market.propagated @ p["phi.log_variance"]).exp()).sqrt()
            z = market.propagated @ p["phi.mean"] + deviation * epsilon
            score = p["theta"][0] * z @ z.T + p["theta"][1]
            optimizer.zero_grad()
            torch.autograd.backward(-torch.log(torch.sigmoid(score[u, v] - score[u, w])).mean())
            optimizer.step()
    torch.testing.assert_close(ours["theta"][0, 0], p["theta"].detach()[0])  # θ₂ cancels out of BPR
    for n in ("phi.mean", "phi.log_variance"):
        torch.testing.assert_close(ours[n][0], p[n].detach(), rtol=1e-4, atol=1e-5, msg=n)


def test_markets_in_a_cohort_train_as_single_markets() -> None:
    method = PFGNN(lr=0.02)
    trainer, one, other = PFGNNTrainer(method), start(), {n: 0.5 * t for n, t in start().items()}
    both = {n: torch.cat([one[n], other[n]]) for n in one}
    sources = [torch.Generator().manual_seed(s) for s in (1, 2)]
    together = trainer.train([ring(0), ring(1)], both, initialize_moments(method, both), sources, [False, True], 3)
    sources = [torch.Generator().manual_seed(s) for s in (1, 2)]
    for k, (begin, market, fresh) in enumerate(((one, ring(0), False), (other, ring(1), True))):
        single = trainer.train([market], begin, initialize_moments(method, begin), [sources[k]], [fresh], 3)
        for n in begin:
            assert together.params[n][k].equal(single.params[n][0])
            assert together.moments.first[n][k].equal(single.moments.first[n][0])
