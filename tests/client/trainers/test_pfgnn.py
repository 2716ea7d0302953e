"""Algorithm 2 of PF-GNN+ against itself written out, and its limits (algorithms.md §5.10)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from client.stacked_tensors import Tensors
from client.trainers.gradient_descent import Descent
from client.trainers.optimizers import fresh_moments
from client.trainers.pfgnn import PFGNNTrainer
from client.trainers.proximal import proximal
from common.methods.pfgnn import PFGNN
from common.tasks.markets.task import TASK

N, D, K, C = 11, 6, 4, 3


@dataclass(frozen=True)
class Ring:
    """Items in a ring, each going with the next one; features drawn, some propagation already in them."""

    features: Tensor
    propagated: Tensor
    pairs: Tensor

    def triples(self, generator: torch.Generator) -> Tensor:
        item = torch.randint(N, (16,), generator=generator)
        return torch.stack([item, (item + 1) % N, (item + 3) % N], dim=1)


def ring(seed: int = 0) -> Ring:
    source = torch.Generator().manual_seed(seed)
    x = torch.randn(N, D, generator=source)
    smooth = (x + x.roll(1, 0) + x.roll(-1, 0)) / 3
    return Ring(x, smooth, torch.stack([torch.arange(N), (torch.arange(N) + 1) % N], dim=1))


def start(plus: bool = True, known: bool = True, exchange: str = "summary") -> Tensors:
    source = torch.Generator().manual_seed(7)
    drawn = {n: 0.4 * torch.randn(1, D, K, generator=source) for n in ("phi.mean", "phi.log_variance", "alpha")}
    clusters = {n: torch.randn(1, C, K, generator=source) for n in ("kappa", "xi")}
    clusters["xi"] = clusters["xi"] if known else torch.zeros(1, C, K)
    kept = {n: t for n, t in clusters.items() if plus and (n == "kappa" or exchange == "summary")}
    return {**drawn, "theta": torch.tensor([[1.0, 0.0]]), **kept}


def run(begin: Tensors, steps: int = 5, fresh: bool = False, seed: int = 3, **options: Any) -> Descent:
    algorithm = PFGNN(**{"optimizer": "sgd", "lr": 0.1, "clip_norm": 0.0, **options})
    generator = torch.Generator().manual_seed(seed)
    moments = fresh_moments(algorithm, begin)
    return PFGNNTrainer(algorithm).train([ring()], begin, moments, [generator], [fresh], steps)


def written_out(begin: Tensors, steps: int, lambda_w: float, lambda_s: float, lr: float, v0: float) -> Tensors:
    """Algorithm 2 with everything dense and nothing shared with the code under test."""
    market, source = ring(), torch.Generator().manual_seed(3)
    p = {n: t[0].clone() for n, t in begin.items()}
    adjacency = torch.zeros(N, N)
    for a, b in market.pairs.tolist():
        adjacency[a, b] = adjacency[b, a] = 1
    for _ in range(steps):
        triples, epsilon = market.triples(source), torch.randn(N, K, generator=source)

        def pieces(q: Tensors, triples: Tensor = triples, epsilon: Tensor = epsilon) -> tuple[Tensor, Tensor]:
            """(Eq 15, ξ)."""
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
        slopes = torch.autograd.grad(pieces({**p, **own})[0], list(own.values()))
        p |= {n: p[n] - lr * g for n, g in zip(own, slopes, strict=True)}
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
    wanted = written_out(begin, 3, 0.7, 0.05, 0.1, 0.3)
    assert ours.keys() == wanted.keys()
    for n, t in wanted.items():
        torch.testing.assert_close(ours[n][0], t, rtol=1e-4, atol=1e-5, msg=n)
        assert not torch.allclose(ours[n], begin[n]), f"{n} moves"


def test_an_infinite_pull_keeps_the_servers_encoder() -> None:
    begin = start()
    ours = run(begin, lambda_w=1e9).params
    for n in ("phi.mean", "phi.log_variance"):
        torch.testing.assert_close(ours[n], begin[n], rtol=1e-6, atol=1e-7)
    assert not torch.allclose(ours["theta"], begin["theta"])


def test_without_any_pull_a_market_trains_alone() -> None:
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
    torch.testing.assert_close(ours["theta"][0, 0], p["theta"].detach()[0])  # the other cancels out of BPR
    for n in ("phi.mean", "phi.log_variance"):
        torch.testing.assert_close(ours[n][0], p[n].detach(), rtol=1e-4, atol=1e-5, msg=n)


def test_pf_gnn_plus_without_clusters_terms_is_pf_gnn() -> None:
    plus = run(start(), lambda_s=0.0, reconstruction=0.0).params
    bare = run(start(plus=False), plus=False).params
    for n in bare:
        torch.testing.assert_close(plus[n], bare[n])
    torch.testing.assert_close(plus["kappa"], start()["kappa"])


@pytest.mark.parametrize(("optimizer", "lr"), [("sgd", 0.3), ("adam", 0.03)])
def test_the_fit_gets_better(optimizer: str, lr: float) -> None:
    params, losses = start(), []
    for seed in range(12):
        descent = run(params, optimizer=optimizer, lr=lr, seed=seed, start_variance=0.01)
        params = descent.params
        losses.append(float(descent.loss[0]))
    assert np.mean(losses[-3:]) < 0.8 * losses[0]


def test_the_first_round_fits_alone_and_summarises() -> None:
    begin = start(known=False)
    first = run(begin, fresh=True, lambda_w=1e9).params
    assert not torch.allclose(first["phi.mean"], begin["phi.mean"]), "no pull before there is anything to be pulled to"
    items = ring().propagated @ first["phi.mean"][0]
    nearest = torch.cdist(first["kappa"][0], items).min(1)
    assert nearest.values.max() < 1e-5, "the centres are items"
    assert len(set(nearest.indices.tolist())) == C
    kernel = 1 / (1 + torch.cdist(items, first["kappa"][0]).square())
    torch.testing.assert_close(first["xi"][0], (kernel / kernel.sum(1, keepdim=True)).T @ items)


def test_a_newcomer_numbers_its_clusters_like_the_others() -> None:
    settled = run(start(known=False), fresh=True, steps=1).params
    shuffled = {**settled, "xi": settled["kappa"][:, [2, 0, 1]]}
    newcomer = run(shuffled, fresh=True, steps=1, lr=1e-9, seed=3).params
    alike = torch.nn.functional.cosine_similarity(newcomer["kappa"][0][:, None], shuffled["xi"][0][None], dim=2)
    assert float(alike.diagonal().sum()) >= max(
        float(alike[torch.arange(C), order].sum()) for order in torch.tensor([[1, 2, 0], [2, 0, 1], [0, 2, 1]])
    )


def test_where_centres_are_exchanged_they_are_pulled_and_no_summary_is_made() -> None:
    begin = start(exchange="kappa")
    still = run(begin, exchange="kappa", lambda_s=1e9).params
    torch.testing.assert_close(still["kappa"], begin["kappa"], rtol=1e-5, atol=1e-6)
    assert not torch.allclose(run(begin, exchange="kappa", lambda_s=0.0).params["kappa"], begin["kappa"])
    assert "xi" not in still


def test_who_keeps_what() -> None:
    names = {"phi.mean", "phi.log_variance", "theta", "alpha", "kappa", "xi"}
    assert names - TASK.private(names, PFGNN().capabilities()) == {"phi.mean", "phi.log_variance", "xi"}
    assert TASK.private(names, PFGNN(exchange="kappa").capabilities()) == {"theta", "alpha"}


def test_clients_side_by_side_are_clients_one_by_one() -> None:
    algorithm = PFGNN(lr=0.02)
    trainer, one, other = PFGNNTrainer(algorithm), start(), {n: 0.5 * t for n, t in start().items()}
    both = {n: torch.cat([one[n], other[n]]) for n in one}
    sources = [torch.Generator().manual_seed(s) for s in (1, 2)]
    side = trainer.train([ring(0), ring(1)], both, fresh_moments(algorithm, both), sources, [False, True], 3)
    sources = [torch.Generator().manual_seed(s) for s in (1, 2)]
    for k, (begin, market, fresh) in enumerate(((one, ring(0), False), (other, ring(1), True))):
        alone = trainer.train([market], begin, fresh_moments(algorithm, begin), [sources[k]], [fresh], 3)
        for n in begin:
            assert side.params[n][k].equal(alone.params[n][0])
            assert side.moments.first[n][k].equal(alone.moments.first[n][0])


def test_a_prior_that_is_standard_leaves_alpha_alone() -> None:
    begin = start()
    ours = run(begin, prior="standard").params
    assert ours["alpha"].equal(begin["alpha"])
    assert run(begin, divergence=0.0).params["alpha"].equal(begin["alpha"])


def test_the_proximal_step_solves_its_quadratic() -> None:
    stepped, anchor = torch.tensor([2.0]), torch.tensor([-1.0])
    solution = float(proximal(stepped, anchor, 0.1, 1000.0))
    assert 2 * 1000.0 * (solution - -1.0) + (solution - 2.0) / 0.1 == pytest.approx(0, abs=1e-2)


def test_clusters_that_coincide_are_told_to_the_market_s_owner_once(caplog: pytest.LogCaptureFixture) -> None:
    begin = start()
    run(begin, steps=1, lr=1e-9)
    assert "clusters coincide" not in caplog.text
    begin["kappa"][0, 1] = begin["kappa"][0, 0]
    first = run(begin, steps=1, lr=1e-9, fresh=True, centres="drawn").params
    assert all(t.isfinite().all() for t in first.values())
    [told] = [record.getMessage() for record in caplog.records]
    assert all(word in told for word in ("wide ridge", "algorithm.pfgnn.clusters", "algorithm.pfgnn.tau"))
    run(first, steps=1, lr=1e-9)
    assert len(caplog.records) == 1, "they coincided before this round, so it was said"


def test_clusters_that_begin_to_coincide_are_told_whenever_it_happens(caplog: pytest.LogCaptureFixture) -> None:
    begin = start()
    run(begin, steps=1, lr=1e-9)
    assert not caplog.records
    run(begin, steps=1, lr=1e8, lambda_w=1e9)  # throws the centres so far out that all items see them alike
    assert "clusters coincide" in caplog.text
