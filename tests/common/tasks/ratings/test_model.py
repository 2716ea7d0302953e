"""Rating models: attention against PyG's, independence of raters, the step of the item scores."""

import pytest
import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap
from torch_geometric.nn import GATConv

from common.config.parse import parse
from common.models import parameters
from common.options import Scalar
from common.tasks.ratings.model import ItemScores, StarAttention
from common.tasks.ratings.options import RatingsOptions
from common.tasks.ratings.vocabulary import ProductCatalogue
from tests.support.build import head_of, own_of, task_model

PRODUCTS = ProductCatalogue(items=tuple("abcdefg"))
QUERIES = torch.arange(7)


def star(width: int = 3) -> StarAttention:
    torch.manual_seed(1)
    model = StarAttention(len(PRODUCTS.items), RatingsOptions(width=width))
    with torch.no_grad():
        model.bias.normal_()
    return model


def library(model: StarAttention, rated: list[int]) -> Tensor:
    """Compute ratings of all products by PyG's layer on the star; the rater is node 0."""
    d = len(model.user)
    layer = GATConv(d, d, heads=1, add_self_loops=True)
    layer.load_state_dict(
        {
            "lin.weight": model.weight,
            "att_src": model.left.view(1, 1, d),
            "att_dst": model.right.view(1, 1, d),
            "bias": model.bias,
        }
    )
    nodes = torch.cat([model.user.unsqueeze(0), model.items[rated]])
    edges = torch.tensor([[k + 1 for k in range(len(rated))], [0] * len(rated)], dtype=torch.long)
    return torch.sigmoid(model.items @ layer(nodes, edges)[0])


@pytest.mark.parametrize("rated", [[], [4], [0, 2, 5], [6, 5, 4, 3, 2, 1, 0]])
def test_it_is_the_library_s_attention_on_the_star(rated: list[int]) -> None:
    model = star()
    index, mask = torch.tensor([[*rated, 1, 1]]), torch.tensor([[1.0] * len(rated) + [0.0, 0.0]])
    torch.testing.assert_close(model(index, mask, QUERIES.unsqueeze(0))[0], library(model, rated))


def test_order_padding_and_other_raters_do_not_matter() -> None:
    model = star()
    index, mask = torch.tensor([[0, 2, 5], [5, 2, 0], [3, 6, 1]]), torch.tensor([[1.0, 1, 1], [1, 1, 1], [1, 0, 0]])
    ratings = model(index, mask, QUERIES.expand(3, -1))
    torch.testing.assert_close(ratings[0], ratings[1])
    torch.testing.assert_close(ratings[2], model(torch.tensor([[3]]), torch.ones(1, 1), QUERIES.unsqueeze(0))[0])


def test_clients_mapped_side_by_side_learn_what_each_does_alone() -> None:
    model = star()
    clients = [{n: p.detach() + 0.1 * k for n, p in model.named_parameters()} for k in range(3)]
    stacked = {n: torch.stack([client[n] for client in clients]) for n in clients[0]}
    index, mask = torch.tensor([[[0, 2]], [[3, 0]], [[1, 6]]]), torch.tensor([[[1.0, 1]], [[1, 0]], [[0, 0]]])

    def loss(params: dict[str, Tensor], index: Tensor, mask: Tensor) -> Tensor:
        total: Tensor = (mask * functional_call(model, params, (index, mask, index))).sum()
        return total

    together = vmap(grad(loss))(stacked, index, mask)
    for k, client in enumerate(clients):
        for name, alone in grad(loss)(client, index[k], mask[k]).items():
            torch.testing.assert_close(together[name][k], alone)


def test_a_step_of_rate_one_moves_the_scores_by_the_report() -> None:
    model, report = ItemScores(4), torch.tensor([0.6, 0.0, -0.8, 0.0])
    (gradient,) = torch.autograd.grad(model(report), [model.scores])
    assert not model.scores.any()
    assert torch.equal(gradient, -report)


def test_a_raters_embedding_is_private_under_every_method() -> None:
    names = {name for name, _ in star().named_parameters()}
    assert own_of("ratings", names) == head_of("ratings", names) == {"user"}
    assert own_of("ratings", ["scores"]) == head_of("ratings", ["scores"]) == frozenset()
    assert own_of("sessions", ["scale", "user"]) == frozenset()


@pytest.mark.parametrize("std", [1.0, 0.3])
def test_the_seed_draws_the_papers_model_at_the_configured_width(std: float) -> None:
    flat: dict[str, Scalar] = {
        "method": "fedavg",
        "task": "ratings",
        "model": "paper",
        "tasks.ratings.embedding-std": std,
    }
    many = ProductCatalogue(items=tuple(map(str, range(4000))))
    first, again, other = (parameters(task_model(parse({**flat, "seed": seed}), many)) for seed in (0, 0, 1))
    assert first["items"].shape == (4000, 8)
    assert first["items"].std() == pytest.approx(std, rel=0.02)
    assert all((a == again[name]).all() for name, a in first.items())
    assert (first["items"] != other["items"]).any()
    assert {name: a.shape for name, a in parameters(task_model(parse({**flat, "model": "default"}), many)).items()} == {
        "scores": (4000,)
    }
