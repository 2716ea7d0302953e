"""The networks of the markets task: S^m X W, variances, and which parameters there are."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from client.tasks.markets.data.graph import normalised, propagated
from common.methods.pfgnn import PFGNN
from common.tasks.markets.model import MarketNetwork, build_market_model, log_variances, prior_variances
from common.tasks.markets.options import MarketsOptions
from common.tasks.markets.vocabulary import MarketCatalogue

CATALOGUE = MarketCatalogue(items=("a", "b"))
SMALL = MarketsOptions(width=6, embedding=4)
ENCODER = {"phi.mean", "phi.log_variance", "theta", "alpha"}


def ring_with_a_chord(n: int = 7) -> np.ndarray:
    adjacency = np.zeros((n, n), np.float32)
    for a, b in [*((k, (k + 1) % n) for k in range(n)), (0, 3)]:
        adjacency[a, b] = adjacency[b, a] = 1
    return adjacency


def test_sgc_is_the_product_written_out() -> None:
    adjacency, x = ring_with_a_chord(), np.random.default_rng(0).normal(size=(7, 6)).astype(np.float32)
    loops = adjacency + np.eye(7)
    degree = loops.sum(1)
    s = loops / np.sqrt(degree[:, None] * degree[None, :])
    np.testing.assert_allclose(normalised(csr_array(adjacency)).toarray(), s, atol=1e-6)
    assert np.abs(np.linalg.eigvalsh(s)).max() <= 1 + 1e-9
    network = MarketNetwork(6, 4, variational=False)
    smooth = torch.from_numpy(propagated(csr_array(adjacency), x, 3))
    expected = np.linalg.matrix_power(s, 3) @ x @ network.phi["mean"].detach().numpy()
    np.testing.assert_allclose(network(smooth).detach().numpy(), expected, rtol=1e-4, atol=1e-5)


def test_variances_start_at_the_given_value_and_stay_finite() -> None:
    x, weight = torch.randn(5, 6), torch.zeros(6, 4)
    torch.testing.assert_close(log_variances(x, weight, 0.01).exp(), torch.full((5, 4), 0.01))
    assert float(log_variances(x, 1e6 * torch.ones(6, 4), 1.0).max()) <= 20
    torch.testing.assert_close(prior_variances(x, weight), torch.full((5, 4), np.log(2) + 1e-4))
    assert float(prior_variances(torch.ones(1, 6), torch.full((6, 4), -1e6)).max()) == pytest.approx(1e-4)


@pytest.mark.parametrize(
    ("pfgnn", "names"),
    [
        (None, {"phi.mean", "theta"}),
        (PFGNN(plus=False), ENCODER),
        (PFGNN(), ENCODER | {"kappa", "xi"}),
        (PFGNN(exchange="kappa"), ENCODER | {"kappa"}),
    ],
    ids=["another method", "pf-gnn", "pf-gnn+", "kappa exchanged"],
)
def test_each_method_has_the_parameters_that_it_needs(pfgnn: PFGNN | None, names: set[str]) -> None:
    network = build_market_model(CATALOGUE, SMALL, pfgnn=pfgnn)
    shapes = {name: tuple(p.shape) for name, p in network.named_parameters()}
    assert shapes.keys() == names
    expected = dict.fromkeys(("phi.mean", "phi.log_variance", "alpha"), (6, 4)) | dict.fromkeys(
        ("kappa", "xi"), (24, 4)
    )
    assert all(shapes[name] == expected[name] for name in names - {"theta"})
    assert network.state_dict()["theta"].tolist() == [1.0, 0.0]


def test_the_initial_summary_is_zero_and_centroids_lie_in_a_cube() -> None:
    network = build_market_model(CATALOGUE, SMALL, pfgnn=PFGNN())
    parameters = dict(network.named_parameters())
    assert not parameters["xi"].any()
    kappa = parameters["kappa"].detach()
    assert float(kappa.abs().max()) <= 1
    assert float(kappa.min()) < -0.5
    assert float(kappa.max()) > 0.5
