"""The authors' own scheme, to stand beside Table II: every item row and every tensor clipped and noised apart, ids in clear.

A harness, not the product: no client here would agree to it, since what it spends is `published.true_epsilon`. Built from
what algorithms.md §4.7–4.8 recovered of their code: RDP of order 2, B/T a round as if a client sent one row, Adam made anew
every round (so that each step is a sign), ratings that arrive, updates weighted by their number of rows. Pseudo items send
noise alone.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import leaky_relu

from benchmarks.ratings.published import BUDGET, ORDER
from client.data.ratings.split import Rated, SplitRater, arrived
from common.models.ratings import NEGATIVE_SLOPE, StarAttention
from common.tasks.ratings import RatingsOptions
from common.tasks.ratings_metrics import rating_metrics

CLIP, RATE, DECAY, PSEUDO = 0.1, 0.05, 1e-4, 50
EVERY = 10
"""Rounds between two measurements."""

SHARED = ("weight", "left", "right", "bias")


class Authors:
    """All clients at once.

    Args:
        splits: Everybody's ratings.
        items: I.
        rounds: T.
    """

    def __init__(self, splits: Sequence[SplitRater], items: int, rounds: int) -> None:
        self._rounds, self._items = rounds, items
        self._lengths = [len(split.train) for split in splits]
        self._index, self._ratings, self._order = padded([split.train for split in splits])
        self._asked, truth, place = padded([split.test for split in splits])
        self._tested = place < torch.inf
        self._truth = truth[self._tested].double().numpy()
        self._sigma = noise_of(BUDGET / rounds)

    def run(self, rng: np.random.Generator) -> dict[str, dict[str, float]]:
        """Metrics on the test ratings every so many rounds."""
        torch.manual_seed(int(rng.integers(2**31)))
        shell = StarAttention(self._items, RatingsOptions())
        model = {name: value.detach().clone() for name, value in shell.named_parameters()}
        model["user"] = torch.randn(len(self._lengths), len(model["user"]))
        curve = {}
        for number in range(1, self._rounds + 1):
            model = self._round(model, number, rng)
            if number % EVERY == 0 or number == self._rounds:
                curve[str(number)] = self._measured(model)
        return curve

    def _round(self, model: dict[str, Tensor], number: int, rng: np.random.Generator) -> dict[str, Tensor]:
        there = torch.tensor([arrived(n, number, self._rounds) for n in self._lengths])
        mask = (self._order < there[:, None]).float()
        gradients = self._gradients(model, mask)
        weight = (there + PSEUDO) / (there + PSEUDO).sum()
        moves = {"user": gradients["user"]}
        for name in SHARED:
            sent = clipped(gradients[name].flatten(1)) + self._sigma * torch.randn(len(weight), model[name].numel())
            moves[name] = (weight @ sent).view_as(model[name])
        moves["items"] = self._rows(gradients["items"], mask, weight, rng)
        return {name: stepped(model[name], moves[name]) for name in model}

    def _gradients(self, model: dict[str, Tensor], mask: Tensor) -> dict[str, Tensor]:
        """Of every client's own RMSE, by its own copy of everything: U × …; of the items U × M × d."""
        count = len(mask)
        copies = {name: model[name].expand(count, *model[name].shape).clone() for name in SHARED}
        copies |= {"user": model["user"].clone(), "items": model["items"][self._index]}
        for copy in copies.values():
            copy.requires_grad_(True)
        errors = mask * (predictions(copies, mask, copies["items"]) - self._ratings).square()
        loss = (errors.sum(1) / mask.sum(1).clamp(min=1) + 1e-12).sqrt().sum()
        return dict(zip(copies, torch.autograd.grad(loss, list(copies.values())), strict=True))

    def _rows(self, gradient: Tensor, mask: Tensor, weight: Tensor, rng: np.random.Generator) -> Tensor:
        """The weighted sum of the noised rows, I × d; the noise of an item's rows is drawn as one, of their variance."""
        d = gradient.shape[2]
        rows = clipped(gradient.reshape(-1, d)) * (mask * weight[:, None]).reshape(-1, 1)
        total = torch.zeros(self._items, d).index_add_(0, self._index.reshape(-1), rows)
        squares = (mask * weight[:, None].square()).reshape(-1)
        variance = torch.zeros(self._items).index_add_(0, self._index.reshape(-1), squares)
        pseudo = torch.from_numpy(rng.integers(self._items, size=(len(weight), PSEUDO)))
        variance.index_add_(0, pseudo.reshape(-1), weight.square().repeat_interleave(PSEUDO))
        return total + self._sigma * variance.sqrt()[:, None] * torch.randn(self._items, d)

    def _measured(self, model: dict[str, Tensor]) -> dict[str, float]:
        count = len(self._lengths)
        copies = {name: model[name].expand(count, *model[name].shape) for name in SHARED}
        copies |= {"user": model["user"], "items": model["items"][self._index]}
        guess = predictions(copies, (self._order < torch.inf).float(), model["items"][self._asked])
        return rating_metrics(guess[self._tested].double().numpy(), self._truth)[0]


def predictions(copies: dict[str, Tensor], mask: Tensor, asked: Tensor) -> Tensor:
    """`StarAttention` with parameters of everybody's own: ratings U × Q of asked embeddings U × Q × d."""
    leaves = copies["items"] @ copies["weight"].mT
    user = (copies["weight"] @ copies["user"].unsqueeze(2)).squeeze(2)
    nodes = torch.cat([user.unsqueeze(1), leaves], dim=1)
    present = torch.cat([torch.ones_like(mask[:, :1]), mask], dim=1)
    strength = (nodes * copies["left"].unsqueeze(1)).sum(2) + (user * copies["right"]).sum(1, keepdim=True)
    strength = leaky_relu(strength, NEGATIVE_SLOPE)
    alpha = torch.softmax(strength.masked_fill(present == 0, -torch.inf), dim=1)
    h = (alpha.unsqueeze(-1) * nodes).sum(1) + copies["bias"]
    return torch.sigmoid((asked * h.unsqueeze(1)).sum(-1))


def noise_of(epsilon: float) -> float:
    """σ of a row clipped to C that is released at RDP(2) of ε: σ² = (2C)²α/(2ε)."""
    return 2 * CLIP * math.sqrt(ORDER / (2 * epsilon))


def clipped(rows: Tensor) -> Tensor:
    """Every row cut to norm C."""
    lengths = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    factor: Tensor = CLIP / lengths.clamp(min=CLIP)
    return rows * factor


def stepped(parameter: Tensor, gradient: Tensor) -> Tensor:
    """Adam's first step, with weight decay: its sign."""
    whole = gradient + DECAY * parameter
    return parameter - RATE * whole / (whole.abs() + 1e-8)


def padded(people: Sequence[Rated]) -> tuple[Tensor, Tensor, Tensor]:
    """Items, ratings and places in the order of arrival, U × M each; places of padding are infinite."""
    shape = len(people), max(1, *(len(rated) for rated in people))
    index, ratings, order = torch.zeros(shape, dtype=torch.int64), torch.zeros(shape), torch.full(shape, torch.inf)
    for u, rated in enumerate(people):
        n = len(rated)
        index[u, :n], ratings[u, :n] = torch.from_numpy(rated.items), torch.from_numpy(rated.values).float()
        order[u, :n] = torch.arange(n)
    return index, ratings, order
