"""Baselines of factors of homes and rules, trained on all homes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from client.tasks.rules.data.homes import SplitHome
from studies.rules.baselines import examples_of, weighted_loss
from studies.rules.measure import types_of

WIDTH = 16
"""Length of p_u and q_rule, which is that of the graph network's embeddings."""


@dataclass(frozen=True)
class Pairs:
    """Bipartite graph of users and rules: its numbers of both, and their positive training pairs, 2 × E."""

    users: int
    rules: int
    edges: Tensor


def factorize(
    splits: Sequence[SplitHome],
    entities: int,
    relations: int,
    network: "Callable[[Pairs, torch.Generator], Factors]",
    *,
    rate: float,
    steps: int,
    report_every: int,
    seed: int,
) -> "Iterator[tuple[int, FactorScores]]":
    """Train logits p_u·q + b_u + b_q + μ of user u and rule q by Adam; yield (steps made, scores).

    A step is on all examples. A rule that no training example names has q = 0 and b_q = 0.
    """
    data = examples_of(splits)
    rules, rule = np.unique(data.triples, axis=0, return_inverse=True)
    index = np.full((entities, entities, relations), -1)
    index[tuple(rules.T)] = np.arange(len(rules))
    users = {s.home.name: k for k, s in enumerate(s for s in splits if len(s.train.positives))}

    rule_index = torch.from_numpy(rule)
    edges = torch.stack([data.home, rule_index])[:, data.labels > 0]
    model = network(Pairs(len(users), len(rules), edges), torch.Generator().manual_seed(seed))
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        torch.autograd.backward(weighted_loss(model(data.home, rule_index), data))
        optimizer.step()
        if step % report_every == 0:
            yield step, model.scorer(users, index)


class Factors(nn.Module):
    """Factors and biases of users and rules."""

    def __init__(self, pairs: Pairs, generator: torch.Generator) -> None:
        super().__init__()
        users, rules = pairs.users, pairs.rules
        self.user = nn.Parameter(0.1 * torch.randn(users, WIDTH, generator=generator))
        self.rule = nn.Parameter(0.1 * torch.randn(rules, WIDTH, generator=generator))
        self.user_bias, self.rule_bias = nn.Parameter(torch.zeros(users)), nn.Parameter(torch.zeros(rules))
        self.mean = nn.Parameter(torch.zeros(()))

    def forward(self, user: Tensor, rule: Tensor) -> Tensor:
        """Return logits of pairs, E."""
        users, rules = self.factors()
        dot = (users[user] * rules[rule]).sum(-1)
        return dot + self.user_bias[user] + self.rule_bias[rule] + self.mean

    def factors(self) -> tuple[Tensor, Tensor]:
        """Return p of all users and q of all rules."""
        return self.user, self.rule

    @torch.no_grad()
    def scorer(self, users: dict[str, int], index: NDArray[np.int64]) -> "FactorScores":
        """Return scores by the current parameters; unseen users and rules have zero factors.

        Args:
            users: Row of each user's factors.
            index: F × F × R, row of each rule's factors, −1 for unknown.
        """
        state = {name: p.detach().clone() for name, p in self.named_parameters()}
        self.eval()
        p, q = (torch.cat([found, torch.zeros(1, WIDTH)]) for found in self.factors())
        self.train()
        p_bias, q_bias = (torch.cat([state[f"{n}_bias"], torch.zeros(1)]) for n in ("user", "rule"))

        def logits(home: str) -> NDArray[np.floating]:
            u = users.get(home, -1)
            found: NDArray[np.floating] = (q @ p[u] + p_bias[u] + q_bias + state["mean"]).numpy()
            return found

        return FactorScores(logits, index)


@dataclass(frozen=True)
class FactorScores:
    """Scores of homes and rules, of a home's devices or of the whole catalogue.

    Args:
        logits: Home -> logits of all rules that a home has in training; the last one is that of others.
        index: F × F × R, row of each rule's logit, −1 for unknown.
    """

    logits: Callable[[str], NDArray[np.floating]]
    index: NDArray[np.int64]

    def __call__(self, split: SplitHome) -> NDArray[np.floating]:
        """Return logits of every possible rule between a home's devices, N × N × R."""
        types = types_of(split)
        return self.logits(split.home.name)[self.index[types[:, None], types[None, :]]]

    def of_catalogue(self, home: str) -> NDArray[np.floating]:
        """Return a home's logits of every rule of the catalogue, F × F × R."""
        return self.logits(home)[self.index]
