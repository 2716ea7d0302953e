"""Siamese and SPE against their formulas written out."""

import numpy as np
import pytest
import torch

from common.tasks.markets.model import SemiParametric, SiameseTower, build_market_model
from common.tasks.markets.options import MarketsOptions
from common.tasks.markets.vocabulary import MarketCatalogue
from tests.support.build import head_of, own_of

CATALOGUE = MarketCatalogue(items=tuple("abcdefg"))


def sample(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def values(module: torch.nn.Module) -> dict[str, np.ndarray]:
    return {name: p.detach().numpy() for name, p in module.named_parameters()}


def test_the_tower_has_two_layers_and_ends_on_the_unit_sphere() -> None:
    network, x = SiameseTower(6, 4), sample(5, 6)
    p = values(network)
    hidden = np.maximum(x @ p["tower.hidden.weight"].T + p["tower.hidden.bias"], 0)
    z = hidden @ p["tower.output.weight"].T + p["tower.output.bias"]
    expected = z / np.linalg.norm(z, axis=1, keepdims=True)
    np.testing.assert_allclose(network(torch.from_numpy(x)).detach().numpy(), expected, rtol=1e-5, atol=1e-6)


def test_the_weight_of_an_item_s_vector_grows_with_its_degree() -> None:
    network, x = SemiParametric(6, 4, 7), sample(3, 6)
    vectors, items, degrees = sample(7, 4), np.array([2, 0, 6]), np.array([0.0, 3.0, 400.0], np.float32)
    with torch.no_grad():
        network.ids.copy_(torch.from_numpy(vectors))
    delta = 1 / (1 + np.exp(2 - np.log1p(degrees)))[:, None]
    expected = (1 - delta) * (x @ values(network)["phi"]) + delta * vectors[items]
    embedding = network(*map(torch.from_numpy, (x, items, degrees))).detach().numpy()
    np.testing.assert_allclose(embedding, expected, rtol=1e-5, atol=1e-6)
    assert delta[0] < 0.15
    assert delta[2] > 0.95


@pytest.mark.parametrize(
    ("network", "kind", "head", "client_only"),
    [
        ("siamese", SiameseTower, {"tower.output.weight", "tower.output.bias"}, set()),
        ("spe", SemiParametric, {"theta", "ids"}, {"ids"}),
    ],
)
def test_the_network_option_selects_private_parameters(
    network: str, kind: type, head: set[str], client_only: set[str]
) -> None:
    options = MarketsOptions.model_validate({"network": network, "width": 6, "embedding": 4})
    module = build_market_model(CATALOGUE, options)
    assert isinstance(module, kind)
    names = values(module).keys()
    assert (head_of("markets", names), own_of("markets", names)) == (head, client_only)
    assert options.smoothing == 0
    assert MarketsOptions(hops=2).smoothing == 2


def test_item_vectors_start_at_zero_and_cover_the_catalogue() -> None:
    ids = values(build_market_model(CATALOGUE, MarketsOptions(network="spe", embedding=4)))["ids"]
    assert ids.shape == (7, 4)
    assert not ids.any()
