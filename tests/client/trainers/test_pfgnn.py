"""Algorithm 2 of PF-GNN+ against independent implementations (algorithms.md §5.10)."""

import numpy as np
import pytest
import torch
from torch import Tensor

from client.trainers.pfgnn import PFGNNTrainer, initialize_centroids
from client.training.stacks import Tensors
from client.training.steps import apply_proximal, initialize_moments
from common.methods.pfgnn import PFGNN
from common.tasks.markets.task import TASK
from tests.support.rings import C, K, N, ring, run, start


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


def source(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def groups() -> tuple[Tensor, Tensor]:
    """Return thirty items around three distant directions, and the directions."""
    directions = 9 * torch.eye(3, 4)
    return directions.repeat(10, 1) + 0.01 * torch.randn(30, 4, generator=source(1)), directions


def test_centroids_are_spread_over_the_items_and_matched_to_the_reference() -> None:
    items, directions = groups()
    for seed in range(5):
        for order in ([0, 1, 2], [2, 0, 1]):
            kappa = initialize_centroids(items, torch.zeros(3, 4), 5 * directions[order], source(seed))
            np.testing.assert_allclose(kappa.numpy(), directions[order].numpy(), atol=0.1)


def test_the_seed_determines_the_centroids() -> None:
    items = torch.randn(50, 4, generator=source(2))
    start = torch.randn(5, 4, generator=source(3))
    once, again, other = (initialize_centroids(items, start, start, source(seed)) for seed in (0, 0, 1))
    assert once.equal(again)
    assert not once.equal(other)


def test_clusters_beyond_the_distinct_items_keep_the_server_s_centroid() -> None:
    start = 7 * torch.eye(4)
    items = torch.tensor([[0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    kappa = initialize_centroids(items, start, start, source())
    assert kappa.tolist() == [[1, 0, 0, 0], [0, 7, 0, 0], [0, 0, 1, 0], [0, 0, 0, 7]]
    assert start.equal(7 * torch.eye(4)), "the argument is not changed"


def test_identical_items_give_finite_centroids() -> None:
    start = torch.eye(3)
    assert initialize_centroids(torch.zeros(5, 3), start, start, source()).isfinite().all()


def test_an_infinite_proximal_term_keeps_the_server_s_encoder() -> None:
    begin = start()
    ours = run(begin, lambda_w=1e9).params
    for n in ("phi.mean", "phi.log_variance"):
        torch.testing.assert_close(ours[n], begin[n], rtol=1e-6, atol=1e-7)
    assert not torch.allclose(ours["theta"], begin["theta"])


def test_pf_gnn_plus_without_clusters_terms_is_pf_gnn() -> None:
    plus = run(start(), lambda_s=0.0, reconstruction=0.0).params
    bare = run(start(plus=False), plus=False).params
    for n in bare:
        torch.testing.assert_close(plus[n], bare[n])
    torch.testing.assert_close(plus["kappa"], start()["kappa"])


@pytest.mark.parametrize(("optimizer", "lr"), [("sgd", 0.3), ("adam", 0.03)])
def test_the_fit_improves(optimizer: str, lr: float) -> None:
    params, losses = start(), []
    for seed in range(12):
        descent = run(params, optimizer=optimizer, lr=lr, seed=seed, start_variance=0.01)
        params = descent.params
        losses.append(float(descent.loss[0]))
    assert np.mean(losses[-3:]) < 0.8 * losses[0]


def test_the_first_round_fits_alone_and_summarizes() -> None:
    begin = start(has_summary=False)
    first = run(begin, fresh=True, lambda_w=1e9).params
    assert not torch.allclose(first["phi.mean"], begin["phi.mean"]), "no proximal term without a summary of the server"
    items = ring().propagated @ first["phi.mean"][0]
    nearest = torch.cdist(first["kappa"][0], items).min(1)
    assert nearest.values.max() < 1e-5, "the centroids are items"
    assert len(set(nearest.indices.tolist())) == C
    kernel = 1 / (1 + torch.cdist(items, first["kappa"][0]).square())
    torch.testing.assert_close(first["xi"][0], (kernel / kernel.sum(1, keepdim=True)).T @ items)


def test_a_late_joining_market_matches_the_numbering_of_clusters() -> None:
    first = run(start(has_summary=False), fresh=True, steps=1).params
    shuffled = {**first, "xi": first["kappa"][:, [2, 0, 1]]}
    late = run(shuffled, fresh=True, steps=1, lr=1e-9, seed=3).params
    similarity = torch.nn.functional.cosine_similarity(late["kappa"][0][:, None], shuffled["xi"][0][None], dim=2)
    assert float(similarity.diagonal().sum()) >= max(
        float(similarity[torch.arange(C), order].sum()) for order in torch.tensor([[1, 2, 0], [2, 0, 1], [0, 2, 1]])
    )


def test_exchanged_centroids_have_a_proximal_term_and_no_summary() -> None:
    begin = start(exchange="kappa")
    still = run(begin, exchange="kappa", lambda_s=1e9).params
    torch.testing.assert_close(still["kappa"], begin["kappa"], rtol=1e-5, atol=1e-6)
    assert not torch.allclose(run(begin, exchange="kappa", lambda_s=0.0).params["kappa"], begin["kappa"])
    assert "xi" not in still


def test_private_and_shared_parameters() -> None:
    names = {"phi.mean", "phi.log_variance", "theta", "alpha", "kappa", "xi"}
    assert names - TASK.private(names, PFGNN().capabilities()) == {"phi.mean", "phi.log_variance", "xi"}
    assert TASK.private(names, PFGNN(exchange="kappa").capabilities()) == {"theta", "alpha"}


def test_a_standard_prior_does_not_change_alpha() -> None:
    begin = start()
    ours = run(begin, prior="standard").params
    assert ours["alpha"].equal(begin["alpha"])
    assert run(begin, divergence=0.0).params["alpha"].equal(begin["alpha"])


def test_the_proximal_step_solves_its_quadratic() -> None:
    stepped, anchor = torch.tensor([2.0]), torch.tensor([-1.0])
    solution = float(apply_proximal(stepped, anchor, 0.1, 1000.0))
    assert 2 * 1000.0 * (solution - -1.0) + (solution - 2.0) / 0.1 == pytest.approx(0, abs=1e-2)


def test_coinciding_clusters_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    begin = start()
    run(begin, steps=1, lr=1e-9)
    assert "clusters coincide" not in caplog.text
    begin["kappa"][0, 1] = begin["kappa"][0, 0]
    first = run(begin, steps=1, lr=1e-9, fresh=True, centres="drawn").params
    assert all(t.isfinite().all() for t in first.values())
    [message] = [record.getMessage() for record in caplog.records]
    assert all(word in message for word in ("wide ridge", "algorithm.pfgnn.clusters", "algorithm.pfgnn.tau"))
    run(first, steps=1, lr=1e-9)
    assert len(caplog.records) == 1, "clusters that coincided before this round are not logged again"


def test_clusters_that_begin_to_coincide_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    begin = start()
    run(begin, steps=1, lr=1e-9)
    assert not caplog.records
    run(begin, steps=1, lr=1e8, lambda_w=1e9)  # throws the centres so far out that all items see them similarity
    assert "clusters coincide" in caplog.text
