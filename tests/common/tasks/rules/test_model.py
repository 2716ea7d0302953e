"""Rule recommenders: permutation, padding, and equal logits for triples and for all rules."""

import numpy as np
import pytest
import torch
import torch_geometric.nn
from torch import Tensor

from common.models import parameters, tensors
from common.tasks.rules.model import DenseSAGEConv, RuleRecommender
from common.tasks.rules.options import RulesOptions
from tests.support.build import task_model
from tests.support.toys import CATALOGUE, configured

H, N, F, R, HIDDEN = 2, 5, 3, 4, 4
KEEP = torch.ones(())
both_decoders = pytest.mark.parametrize("paper", [True, False])


def recommender(paper: bool) -> RuleRecommender:
    torch.manual_seed(0)
    model = RuleRecommender(F, R, RulesOptions(hidden=HIDDEN), paper=paper)
    for p in model.parameters():
        torch.nn.init.normal_(p)  # the type tables start at zero, which would hide errors
    return model


def homes() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    x = torch.nn.functional.one_hot(torch.randint(F, (H, N), generator=generator), F).float()
    adj = torch.randint(3, (H, N, N), generator=generator).float()
    return x, adj


def test_the_layer_is_that_of_pyg() -> None:
    x, adj = homes()

    def trained(kind: type[torch.nn.Module]) -> dict[str, Tensor]:
        """Return initial draws, outputs, gradients and the generator's state by name."""
        torch.manual_seed(3)
        layer = kind(F, HIDDEN)
        out = layer(x, adj)
        out.square().sum().backward()
        gradients = {f"gradient of {name}": value.grad for name, value in layer.named_parameters()}
        return {**layer.state_dict(), **gradients, "out": out, "generator": torch.get_rng_state()}

    ours, theirs = trained(DenseSAGEConv), trained(torch_geometric.nn.DenseSAGEConv)
    assert [*ours] == [*theirs]
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


@both_decoders
def test_permuting_a_homes_devices_permutes_its_logits(paper: bool) -> None:
    model, (x, adj) = recommender(paper), homes()
    order = torch.tensor([3, 0, 4, 1, 2])
    logits = model(x, adj, KEEP, None)
    permuted = model(x[:, order], adj[:, order][:, :, order], KEEP, None)
    torch.testing.assert_close(permuted, logits[:, order][:, :, order])
    assert not torch.allclose(permuted, logits)


@both_decoders
def test_padding_does_not_change_the_logits(paper: bool) -> None:
    model, (x, adj) = recommender(paper), homes()
    wide = torch.nn.functional.pad(x, (0, 0, 0, 3, 0, 1))
    padded = model(wide, torch.nn.functional.pad(adj, (0, 3, 0, 3, 0, 1)), KEEP, None)
    assert padded.shape == (H + 1, N + 3, N + 3, R)
    torch.testing.assert_close(padded[:H, :N, :N], model(x, adj, KEEP, None))


@both_decoders
def test_triples_are_the_same_entries_of_everything(paper: bool) -> None:
    model, (x, adj) = recommender(paper), homes()
    generator = torch.Generator().manual_seed(2)
    high = torch.tensor([N, N, R])
    triples = (torch.rand((H, 11, 3), generator=generator) * high).long()
    everything = model(x, adj, KEEP, None)
    expected = torch.stack([everything[h][tuple(triples[h].T)] for h in range(H)])
    torch.testing.assert_close(model(x, adj, KEEP, triples), expected)


@both_decoders
def test_trigger_and_action_are_not_the_same(paper: bool) -> None:
    logits = recommender(paper)(*homes(), KEEP, None)
    assert not torch.allclose(logits, logits.transpose(1, 2))


def test_the_papers_predictor_is_two_dense_layers_on_both_devices() -> None:
    model, (x, adj) = recommender(paper=True), homes()
    z, predictor = model.encoder(x, adj, KEEP), model.predictor
    pair = torch.cat([z[1, 2], z[1, 4]])
    expected = predictor.second(torch.relu(predictor.first(pair)))  # type: ignore[operator,union-attr]
    torch.testing.assert_close(model(x, adj, KEEP, None)[1, 2, 4], expected)


def test_the_encoder_takes_the_mean_over_in_edges() -> None:
    """Check H' = H·W_self + mean_{u→v}(H_u)·W_nei + b; a node without in-edges has no neighbour term."""
    model, (x, adj) = recommender(paper=True), homes()
    adj[0, 1] = 0
    layer = model.encoder.first
    mean = adj[0] @ x[0] / adj[0].sum(1, keepdim=True).clamp(min=1)
    w_nei, w_self = layer.lin_rel.weight, layer.lin_root.weight
    bias = next(lin.bias for lin in (layer.lin_rel, layer.lin_root) if lin.bias is not None)
    torch.testing.assert_close(layer(x, adj)[0], x[0] @ w_self.T + mean @ w_nei.T + bias)
    torch.testing.assert_close(layer(x, adj)[0, 1], w_self[:, x[0, 1].argmax()] + bias)


def test_shapes_are_the_papers() -> None:
    shapes = {n: tuple(p.shape) for n, p in recommender(paper=True).named_parameters() if n.startswith("predictor.")}
    assert shapes == {
        "predictor.first.weight": (R, 2 * HIDDEN),
        "predictor.first.bias": (R,),
        "predictor.second.weight": (R, R),
        "predictor.second.bias": (R,),
    }
    wide = RuleRecommender(F, R, RulesOptions(hidden=HIDDEN, pred_hidden=9), paper=True)
    assert wide.predictor.first.weight.shape == (9, 2 * HIDDEN)  # type: ignore[union-attr]


def test_a_model_is_drawn_from_the_runs_seed_and_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first = parameters(task_model(configured(seed=1), CATALOGUE))
    assert torch.equal(torch.rand(3), expected)
    same, other = (parameters(task_model(configured(seed=s), CATALOGUE)) for s in (1, 2))
    assert all(np.array_equal(first[n], same[n]) for n in first)
    assert any(not np.array_equal(first[n], other[n]) for n in first)


def test_parameters_and_tensors_are_copies() -> None:
    module = task_model(configured(), CATALOGUE)
    arrays = parameters(module)
    copied = tensors(arrays)
    for n in arrays:
        arrays[n] += 1
    assert all(torch.equal(copied[n], p) for n, p in module.named_parameters())
    assert not torch.equal(
        torch.from_numpy(arrays["encoder.first.lin_rel.weight"]), module.encoder.first.lin_rel.weight
    )  # type: ignore[union-attr,arg-type]
