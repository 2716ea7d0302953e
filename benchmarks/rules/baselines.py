"""Baselines without a graph network: matrix factorization, and three that count the training rules."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from benchmarks.rules.measure import Score, types_of
from client.tasks.rules.data.split import SplitHome
from common.tasks.rules.count_posterior import SMOOTHING

WIDTH = 16
"""Length of p_u and q_rule, which is that of the graph network's embeddings."""

Triples = NDArray[np.int64]
"""Trigger type, action type, relation, E × 3: devices of one type are not distinguished."""


@dataclass(frozen=True)
class Examples:
    """Training examples of all homes, each with weight 1 / homes / examples of the home."""

    home: Tensor
    triples: Triples
    labels: Tensor
    weights: Tensor


def examples_of(splits: Sequence[SplitHome]) -> Examples:
    """Return the examples that Eq 2 averages over, in types instead of devices."""
    homes = [split for split in splits if len(split.train.positives)]
    triples, labels, weights, owner = [], [], [], []
    for number, split in enumerate(homes):
        positives, negatives = split.train.positives, split.train.negatives
        size, types = len(positives) + len(negatives), types_of(split)
        edges = np.concatenate([positives, negatives])
        triples.append(np.column_stack([types[edges[:, 0]], types[edges[:, 1]], edges[:, 2]]))
        labels.append(np.repeat([1.0, 0.0], [len(positives), len(negatives)]))
        weights.append(np.full(size, 1 / size / len(homes)))
        owner.append(np.full(size, number))
    return Examples(
        torch.from_numpy(np.concatenate(owner)),
        np.concatenate(triples),
        torch.from_numpy(np.concatenate(labels)).float(),
        torch.from_numpy(np.concatenate(weights)).float(),
    )


def count_baseline(splits: Sequence[SplitHome], entities: int, relations: int, key: str) -> Score:
    """Return logits w·features + b, with w and b fitted to the training examples.

    Each rule is left out of its own counts.

    With ℓ = log(count + s): `counts-relation` has the one feature ℓ[r]; `counts-sides` the sum ℓ₁[trigger type, r] +
    ℓ₂[action type, r]; `counts-triple` has this sum and ℓ₃[both types, r].
    """
    data = examples_of(splits)
    triple = np.zeros((entities, entities, relations))
    np.add.at(triple, tuple(data.triples[data.labels.numpy() == 1].T), 1)
    tables = _tables(triple)

    own = data.labels.numpy()
    logs = [np.log(_lookup(table, *data.triples.T) - own + SMOOTHING) for table in tables]
    weight, bias = _logistic(torch.from_numpy(np.column_stack(_features(logs, key))), data)

    def score(split: SplitHome) -> NDArray[np.floating]:
        types = types_of(split)
        place = (types[:, None, None], types[None, :, None], np.arange(relations)[None, None, :])
        logs = [np.log(_lookup(table, *place) + SMOOTHING) for table in tables]
        features = _features(logs, key)
        logits = sum(w * feature for w, feature in zip(weight, features, strict=True)) + bias
        return np.broadcast_to(logits, (len(types), len(types), relations))

    return score


def factorize(
    splits: Sequence[SplitHome], entities: int, relations: int, *, rate: float, steps: int, report_every: int, seed: int
) -> Iterator[tuple[int, Score]]:
    """Train logits p_u·q + b_u + b_q + μ of user u and rule q by Adam; yield (steps made, score).

    A step is on all examples. A rule that no training example names has q = 0 and b_q = 0.
    """
    data = examples_of(splits)
    rules, rule = np.unique(data.triples, axis=0, return_inverse=True)
    index = np.full((entities, entities, relations), -1)
    index[tuple(rules.T)] = np.arange(len(rules))
    users = {s.home.name: k for k, s in enumerate(s for s in splits if len(s.train.positives))}

    model = _Factors(len(users), len(rules), torch.Generator().manual_seed(seed))
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    rule_index = torch.from_numpy(rule)
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        _weighted_loss(model(data.home, rule_index), data).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if step % report_every == 0:
            yield step, model.scorer(users, index)


class _Factors(nn.Module):
    """Factors and biases of users and rules."""

    def __init__(self, users: int, rules: int, generator: torch.Generator) -> None:
        super().__init__()
        self.user = nn.Parameter(0.1 * torch.randn(users, WIDTH, generator=generator))
        self.rule = nn.Parameter(0.1 * torch.randn(rules, WIDTH, generator=generator))
        self.user_bias, self.rule_bias = nn.Parameter(torch.zeros(users)), nn.Parameter(torch.zeros(rules))
        self.mean = nn.Parameter(torch.zeros(()))

    def forward(self, user: Tensor, rule: Tensor) -> Tensor:
        """Return logits of pairs, E."""
        dot = (self.user[user] * self.rule[rule]).sum(-1)
        return dot + self.user_bias[user] + self.rule_bias[rule] + self.mean

    def scorer(self, users: dict[str, int], index: NDArray[np.int64]) -> Score:
        """Return a scorer by the current parameters; unseen users and rules have zero factors.

        Args:
            users: Row of each user's factors.
            index: F × F × R, row of each rule's factors, −1 for unknown.
        """
        state = {name: p.detach().clone() for name, p in self.named_parameters()}
        p, q = (torch.cat([state[n], torch.zeros(1, WIDTH)]) for n in ("user", "rule"))
        p_bias, q_bias = (torch.cat([state[f"{n}_bias"], torch.zeros(1)]) for n in ("user", "rule"))

        def score(split: SplitHome) -> NDArray[np.floating]:
            types, u = types_of(split), users.get(split.home.name, -1)
            logits: NDArray[np.floating] = (q @ p[u] + p_bias[u] + q_bias + state["mean"]).numpy()
            return logits[index[types[:, None], types[None, :]]]

        return score


def _tables(triple: NDArray[np.floating]) -> list[NDArray[np.floating]]:
    """Return C, C₁, C₂, C₃, each F × F × R with length 1 where it is summed over."""
    return [triple.sum((0, 1), keepdims=True), triple.sum(1, keepdims=True), triple.sum(0, keepdims=True), triple]


def _features(logs: Sequence[NDArray[np.floating]], key: str) -> list[NDArray[np.floating]]:
    relation, trigger, action, triple = logs
    features = {
        "counts-relation": [relation],
        "counts-sides": [trigger + action],
        "counts-triple": [trigger + action, triple],
    }
    return features[key]


def _lookup(table: NDArray[np.floating], i: Triples, j: Triples, r: Triples) -> NDArray[np.floating]:
    return np.asarray(table[i if table.shape[0] > 1 else 0, j if table.shape[1] > 1 else 0, r])


def _logistic(features: Tensor, data: Examples) -> tuple[list[float], float]:
    """Return weights and bias of the least weighted cross-entropy."""
    weight = torch.zeros(features.shape[1], dtype=features.dtype, requires_grad=True)
    bias = torch.zeros((), dtype=features.dtype, requires_grad=True)
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = _weighted_loss(features @ weight + bias, data)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    return weight.tolist(), bias.item()


def _weighted_loss(logits: Tensor, data: Examples) -> Tensor:
    each = binary_cross_entropy_with_logits(logits, data.labels.to(logits.dtype), reduction="none")
    return (data.weights * each).sum()
