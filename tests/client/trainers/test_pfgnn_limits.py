"""Limits and special cases of PF-GNN+'s local training (algorithms.md §5.10)."""

import numpy as np
import pytest
import torch

from client.training.steps import apply_proximal
from common.methods.pfgnn import PFGNN
from common.tasks.markets.task import TASK
from tests.support.rings import C, ring, run, start


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
