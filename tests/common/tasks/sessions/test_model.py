"""SR-GNN and TAGNN against algorithms.md §2.6–2.7, computed per session and candidate."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy, pad

from client.tasks.sessions.data.visitors import GRAPH
from client.tasks.sessions.learner import ExampleBatch, collate
from common.tasks.sessions import model as session_attention
from common.tasks.sessions.model import (
    INITIAL_WEIGHT,
    SRGNN,
    LocalBlend,
    build_session_model,
    softmax_by_session,
    target_scores,
)
from common.tasks.sessions.options import SessionsOptions
from common.tasks.sessions.slist import FEATURES

V, D = 9, 5
SESSIONS = [[3], [1, 1], [4, 2, 4, 7], [0, 8, 0, 8, 5], [2, 6, 2, 2, 6, 1]]
TARGETS = [1, 0, 8, 3, 2]
networks = pytest.mark.parametrize("network", ["srgnn", "tagnn", "tagnn_concat"])


def build(network: str, *, steps: int = 1) -> nn.Module:
    torch.manual_seed(0)
    return build_session_model(V, SessionsOptions.model_validate({"network": network, "hidden": D, "steps": steps}))


def batch_of(sessions: list[list[int]], targets: list[int] = TARGETS) -> ExampleBatch:
    return collate([np.array(session, np.int64) for session in sessions], targets, 20)


def scores(model: nn.Module, batch: ExampleBatch) -> Tensor:
    logits: Tensor = model(*batch.graph)
    return logits


def loss(model: nn.Module, params: dict[str, Tensor], batch: dict[str, Tensor]) -> Tensor:
    logits = functional_call(model, params, tuple(batch[name] for name in GRAPH))
    each = cross_entropy(logits, batch["target"], reduction="none")
    return (batch["weights"] * each).sum() / batch["weights"].sum()


def slow_scores(p: dict[str, Tensor], session: list[int], network: str, steps: int) -> list[float]:
    """Compute scores of all items after one session, without batch, padding or adjacency matrix."""
    pairs = set(itertools.pairwise(session))
    h = {u: p["embedding.weight"][u + 1] for u in session}
    for _ in range(steps):
        h = {v: slow_step(p, h, v, [u for u, w in pairs if w == v], [w for u, w in pairs if u == v]) for v in h}
    clicks, last = [h[u] for u in session], h[session[-1]]
    alpha = [
        p["q.weight"][0] @ torch.sigmoid(p["w1.weight"] @ last + p["w2.weight"] @ v + p["w1.bias"]) for v in clicks
    ]
    if network == "tagnn":
        alpha = softmax(alpha)
    s_g = sum((a * v for a, v in zip(alpha, clicks, strict=True)), torch.zeros(D))
    s_h = p["w3.weight"] @ torch.cat([s_g, last]) + p["w3.bias"]
    return [float(slow_target(p, clicks, s_h, e, network) @ e) for e in p["embedding.weight"][1:]]


def slow_step(p: dict[str, Tensor], h: dict[int, Tensor], v: int, before: list[int], after: list[int]) -> Tensor:
    def mean(neighbours: list[int], name: str) -> Tensor:
        rows = [p[f"graph.{name}.weight"] @ h[u] + p[f"graph.{name}.bias"] for u in neighbours]
        return sum(rows, torch.zeros(D)) / max(len(rows), 1)

    a = torch.cat([mean(before, "incoming") + p["graph.bias_in"], mean(after, "outgoing") + p["graph.bias_out"]])
    cell = nn.GRUCell(2 * D, D)  # torch's gates stand in the same order: r, z, n
    names = {"weight_ih": "gates.weight", "weight_hh": "recurrent.weight", "bias_ih": "gates.bias"}
    names["bias_hh"] = "recurrent.bias"
    stepped: Tensor = functional_call(cell, {c: p[f"graph.{ours}"] for c, ours in names.items()}, (a, h[v]))
    return stepped


def slow_target(p: dict[str, Tensor], clicks: list[Tensor], s_h: Tensor, e: Tensor, network: str) -> Tensor:
    if network == "srgnn":
        return s_h
    beta = softmax([e @ p["target.weight"] @ v for v in clicks])
    s_t = sum((b * v for b, v in zip(beta, clicks, strict=True)), torch.zeros(D))
    return s_h + (p["w_t.weight"] @ s_t if network == "tagnn_concat" else s_t)


def softmax(numbers: list[Tensor]) -> list[Tensor]:
    powers = [torch.exp(number) for number in numbers]
    return [power / sum(powers) for power in powers]


@networks
@pytest.mark.parametrize("steps", [1, 2])
def test_scores_are_those_of_the_equations(network: str, steps: int) -> None:
    model = build(network, steps=steps)
    with torch.no_grad():
        expected = [slow_scores(dict(model.named_parameters()), s, network, steps) for s in SESSIONS]
        logits = scores(model, batch_of(SESSIONS))
    assert logits.shape == (len(SESSIONS), V)
    torch.testing.assert_close(logits, torch.tensor(expected))


@networks
def test_padding_does_not_change_the_scores(network: str) -> None:
    model, batch = build(network), batch_of(SESSIONS)
    with torch.no_grad():
        model.get_parameter("embedding.weight")[0] = 3.0  # not even where noise has moved the padding row
    wide = dataclasses.replace(
        batch,
        nodes=pad(batch.nodes, (0, 2)),
        edges=pad(batch.edges, (0, 3)),
        w_in=pad(batch.w_in, (0, 3)),
        w_out=pad(batch.w_out, (0, 3)),
        clicks=pad(batch.clicks, (0, 3)),
        owner=pad(batch.owner, (0, 3)),
    )
    torch.testing.assert_close(scores(model, wide), scores(model, batch))


@networks
def test_the_order_of_nodes_does_not_change_the_scores(network: str) -> None:
    model, batch = build(network), batch_of(SESSIONS)
    order = torch.randperm(len(batch.nodes), generator=torch.Generator().manual_seed(3))
    mixed = torch.randperm(len(batch.w_in), generator=torch.Generator().manual_seed(4))
    place = torch.argsort(order)
    permuted = dataclasses.replace(
        batch,
        nodes=batch.nodes[order],
        edges=place[batch.edges][:, mixed],
        w_in=batch.w_in[mixed],
        w_out=batch.w_out[mixed],
        clicks=place[batch.clicks],
        last=place[batch.last],
    )
    torch.testing.assert_close(scores(model, permuted), scores(model, batch))


@networks
def test_a_stack_of_clients_has_each_clients_own_gradients(network: str) -> None:
    """Check three clients, padded to the largest; the last row of the third is padding."""
    model = build(network)
    generator = torch.Generator().manual_seed(4)
    params = {n: p.detach() + 0.1 * torch.randn(3, *p.shape, generator=generator) for n, p in model.named_parameters()}
    rows = [[0, 1], [2, 3], [4]]
    alone = [vars(batch_of([SESSIONS[k] for k in some], [TARGETS[k] for k in some])) for some in rows]
    stacked = {name: torch.stack([pad_client(client[name], 2, name) for client in alone]) for name in alone[0]}
    together = vmap(grad(lambda p, b: loss(model, p, b)))(params, stacked)
    for k, client in enumerate(alone):
        lone = grad(lambda p, b: loss(model, p, b))({n: p[k] for n, p in params.items()}, client)
        for name, gradient in lone.items():
            torch.testing.assert_close(together[name][k], gradient, msg=lambda text, name=name: f"{name}: {text}")


def pad_client(tensor: Tensor, examples: int, name: str) -> Tensor:
    """Return the tensor zero-padded to `examples` rows, 10 nodes, 9 edges and 12 clicks."""
    sizes = {"nodes": [10], "edges": [2, 9], "w_in": [9], "w_out": [9], "clicks": [12], "owner": [12]}
    size = sizes.get(name, [examples])
    wide = tensor.new_zeros(size)
    wide[tuple(slice(0, length) for length in tensor.shape)] = tensor
    return wide


@networks
def test_nothing_but_padding_scores_finitely_and_has_finite_gradients(network: str) -> None:
    model, batch = build(network), batch_of([[], []], [0, 0])
    logits = scores(model, batch)
    assert logits.shape == (2, V)
    assert logits.isfinite().all()
    cross_entropy(logits, batch.target).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@networks
def test_the_padding_row_gets_no_gradient(network: str) -> None:
    model, batch = build(network), batch_of([*SESSIONS, []], [*TARGETS, 0])
    cross_entropy(scores(model, batch), batch.target).backward()
    gradient = model.get_parameter("embedding.weight").grad
    assert gradient is not None
    assert (gradient[0] == 0).all()
    assert (gradient[1:] != 0).any(1).all()


@networks
def test_parameters_start_uniformly_and_padding_at_zero(network: str) -> None:
    torch.manual_seed(0)
    options = SessionsOptions.model_validate({"network": network, "hidden": 16})
    model, bound = build_session_model(500, options), 1 / 4
    weight = model.get_parameter("embedding.weight").detach()
    assert weight.shape == (501, 16)
    assert (weight[0] == 0).all()
    assert weight[1:].std().item() == pytest.approx(bound / 3**0.5, rel=0.02)
    for parameter in model.parameters():
        assert 0.6 * bound < parameter.detach().abs().max() <= bound


def test_vectors_are_what_srgnn_scores_with() -> None:
    model, batch = build("srgnn"), batch_of(SESSIONS)
    assert isinstance(model, SRGNN)
    vectors = model.vectors(*batch.graph)
    torch.testing.assert_close(vectors @ model.embedding.weight[1:].T, scores(model, batch))


OWNERS = torch.tensor([1, 1, 1, 1, 2, 2, 0, 3, 0])
"""Four clicks, two and one, of the first three of four sessions, and padding."""


def attention_case() -> tuple[Tensor, ...]:
    """Return candidates, keys and values."""
    generator = torch.Generator().manual_seed(5)
    e = torch.randn(7, 3, generator=generator, dtype=torch.float64)
    keys, values = torch.randn(2, len(OWNERS), 3, generator=generator, dtype=torch.float64)
    return e, keys, values


def test_scores_are_those_of_each_session_alone() -> None:
    e, keys, values = attention_case()
    scores = target_scores(e, keys, values, OWNERS, 4)
    for session in range(1, 5):
        in_session = torch.eq(OWNERS, session)
        beta = torch.softmax(keys[in_session] @ e.T, dim=0)
        torch.testing.assert_close(scores[session - 1], (beta * (values[in_session] @ e.T)).sum(0))


def test_attention_in_chunks_is_attention_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = [t.requires_grad_() for t in attention_case()]

    def results() -> tuple[Tensor, ...]:
        scores = target_scores(tensors[0], tensors[1], tensors[2], OWNERS, 4)
        return scores.detach(), *torch.autograd.grad(scores.square().sum(), tensors)

    at_once = results()
    monkeypatch.setattr(session_attention, "CHUNK_SCORES", 2 * OWNERS.numel())  # two candidates a chunk
    for chunked, whole in zip(results(), at_once, strict=True):
        torch.testing.assert_close(chunked, whole)


def test_gradients_of_attention_are_its_finite_differences() -> None:
    inputs = tuple(t.requires_grad_() for t in attention_case())
    assert torch.autograd.gradcheck(lambda *tensors: target_scores(*tensors, OWNERS, 4), inputs)
    assert (target_scores(*inputs, OWNERS, 4)[3] == 0).all()


def test_softmax_by_session_bears_large_scores_and_ignores_padding() -> None:
    scores = torch.tensor([[1e4], [1e4 + 1], [-1e4], [7e7]])
    softmax = softmax_by_session(scores, torch.tensor([1, 1, 2, 0]), 3).squeeze(1)
    torch.testing.assert_close(softmax, torch.tensor([1 / (1 + math.e), math.e / (1 + math.e), 1.0, 0.0]))


class Constant(nn.Module):
    """Network that scores every item 1."""

    def forward(self, nodes: Tensor) -> Tensor:
        return torch.ones(len(nodes), 5)


def test_features_add_to_the_scores_of_their_items() -> None:
    index = torch.tensor([[2, 4, 0], [1, 0, 0]])
    value = torch.zeros(2, 3, len(FEATURES))
    value[0, 0, 0], value[0, 1, 2], value[1, 0, 1] = 3.0, 0.5, 2.0
    network, blended = LocalBlend(Constant())((torch.zeros(2, 1),), index, value)
    torch.testing.assert_close(network, torch.ones(2, 5))
    expected = torch.full((2, 5), INITIAL_WEIGHT)
    expected[0, 2] += (3.0 + 1) * INITIAL_WEIGHT
    expected[0, 4] += (0.5 + 1) * INITIAL_WEIGHT
    expected[1, 1] += (2.0 + 1) * INITIAL_WEIGHT
    torch.testing.assert_close(blended, expected)
