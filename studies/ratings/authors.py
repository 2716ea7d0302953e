"""Authors' scheme of Table II: each item row and tensor clipped and noised apart, ids in plaintext.

The product's clients refuse this scheme: its true cost is `paper_figures.true_epsilon`. It follows algorithms.md §4.7–4.8:
RDP of order 2 or a sum of ε, B over the rounds as if a client sent one row, a new Adam every round (each step is a sign),
arriving ratings, updates weighted by their number of rows, planners rewarded by test ratings, pseudo items of noise alone.
"""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import leaky_relu

from client.tasks.ratings.data.raters import Rated, SplitRater, arrived
from common.methods.planners import BGTplanner, PlannerOptions, Uniform
from common.tasks.ratings.model import NEGATIVE_SLOPE, StarAttention
from common.tasks.ratings.options import RatingsOptions
from common.tasks.ratings.task import rating_metrics
from server.planning.planner import Decision, RunBudget, Stop
from server.planning.registry import build_planner
from server.planning.reward import item_matrix, singular_values
from studies.harness.row import Metrics
from studies.ratings.paper_figures import BUDGET, ORDER

Mechanism = Literal["gaussian", "laplace"]

CLIP, RATE, DECAY, PSEUDO = 0.1, 0.05, 1e-4, 50
EVERY = 10
"""Rounds between two evaluations."""

DPSGD = Uniform()
SHARED = ("weight", "left", "right", "bias")


class Authors:
    """All clients of the scheme in one process.

    Args:
        splits: Ratings of all clients.
        items: Number of items I.
        rounds: Number of rounds T.
        planner: Planner that spends B.
        mechanism: Mechanism of every row.
    """

    def __init__(
        self,
        splits: Sequence[SplitRater],
        items: int,
        rounds: int,
        planner: PlannerOptions = DPSGD,
        mechanism: Mechanism = "gaussian",
    ) -> None:
        self._rounds, self._items, self._mechanism = rounds, items, mechanism
        self._planner = build_planner(
            planner, RunBudget(BUDGET, rounds, len(splits), 2 if mechanism == "gaussian" else 1)
        )
        self._context = planner.context if isinstance(planner, BGTplanner) else 0
        self._lengths = [len(split.train) for split in splits]
        self._index, self._ratings, self._order = pad_ratings([split.train for split in splits])
        self._queries, truth, place = pad_ratings([split.test for split in splits])
        self._tested = place < torch.inf
        self._truth = truth[self._tested].double().numpy()
        self._named: list[NDArray[np.int64]] = []

    def run(self, seed: int) -> dict[int, Metrics]:
        """Return metrics on the test ratings every `EVERY` rounds, and after the last one.

        Args:
            seed: Seed of first model, noise and the planner's decisions.
        """
        rng = np.random.default_rng([seed, self._rounds])
        torch.manual_seed(int(rng.integers(2**31)))
        shell = StarAttention(self._items, RatingsOptions())
        model = {name: value.detach().clone() for name, value in shell.named_parameters()}
        model["user"] = torch.randn(len(self._lengths), len(model["user"]))
        curve, state, context, left = {}, self._planner.start(), np.zeros(self._context), BUDGET
        now = self._metrics_of(model)
        for number in range(1, self._rounds + 1):
            remaining = {str(k): left for k in range(len(self._lengths))}  # clients without ratings spend too
            decision = self._planner.decide(state, context, remaining, np.random.default_rng([seed, number]))
            if isinstance(decision, Stop):
                break
            model, norm = self._round(model, number, decision, rng)
            before, now, left = now, self._metrics_of(model), left - decision.cost
            state = self._planner.observe(state, decision, before["rmse"] - now["rmse"], None, norm)
            context = singular_values(item_matrix(self._named, self._items), self._context)
            if number % EVERY == 0:
                curve[number] = now
        return {**curve, len(state.history): now}

    def _round(
        self, model: dict[str, Tensor], number: int, decision: Decision, rng: np.random.Generator
    ) -> tuple[dict[str, Tensor], float]:
        """Return the model after a round, and the norm of its step over the clip."""
        clip = CLIP * decision.clip
        noise = noise_of(decision.cost, clip, self._mechanism)
        present = torch.tensor([arrived(n, number, self._rounds) for n in self._lengths])
        mask = (self._order < present[:, None]).float()
        gradients = self._gradients(model, mask)
        weight = (present + PSEUDO) / (present + PSEUDO).sum()
        moves = {"user": gradients["user"]}
        for name in SHARED:
            rows = self._clip_rows(gradients[name].flatten(1), clip)
            sent = rows + noise * sample_noise(rows.shape, self._mechanism)
            moves[name] = (weight @ sent).view_as(model[name])
        moves["items"] = self._rows(self._clip_rows(gradients["items"].flatten(0, 1), clip), mask, weight, noise, rng)
        shared = torch.cat([moves[name].flatten() for name in (*SHARED, "items")])
        return {name: step_adam(model[name], moves[name]) for name in model}, float(shared.norm()) / CLIP

    def _clip_rows(self, rows: Tensor, clip: float) -> Tensor:
        return clip_rows(rows, clip, 2 if self._mechanism == "gaussian" else 1)

    def _gradients(self, model: dict[str, Tensor], mask: Tensor) -> dict[str, Tensor]:
        """Return gradients of each client's RMSE by its copy of the model, U × …; of items U × M × d."""
        count = len(mask)
        copies = {name: model[name].expand(count, *model[name].shape).clone() for name in SHARED}
        copies |= {"user": model["user"].clone(), "items": model["items"][self._index]}
        for copy in copies.values():
            copy.requires_grad_(True)
        errors = mask * (predictions(copies, mask, copies["items"]) - self._ratings).square()
        loss = (errors.sum(1) / mask.sum(1).clamp(min=1) + 1e-12).sqrt().sum()
        return dict(zip(copies, torch.autograd.grad(loss, list(copies.values())), strict=True))

    def _rows(self, rows: Tensor, mask: Tensor, weight: Tensor, noise: float, rng: np.random.Generator) -> Tensor:
        """Return the weighted sum of clipped and noised rows, I × d.

        The noise of an item's rows is drawn once, normal with their summed variance, since an item has dozens of rows.
        """
        d = rows.shape[1]
        shares = (mask * weight[:, None]).reshape(-1, 1)
        total = torch.zeros(self._items, d).index_add_(0, self._index.reshape(-1), rows * shares)
        squares = (mask * weight[:, None].square()).reshape(-1)
        variance = torch.zeros(self._items).index_add_(0, self._index.reshape(-1), squares)
        pseudo = torch.from_numpy(rng.integers(self._items, size=(len(weight), PSEUDO)))
        variance.index_add_(0, pseudo.reshape(-1), weight.square().repeat_interleave(PSEUDO))
        own = zip(self._index.numpy(), mask.numpy() > 0, strict=True)
        self._named = [np.union1d(index[seen], extra) for (index, seen), extra in zip(own, pseudo.numpy(), strict=True)]
        deviation = noise * (1 if self._mechanism == "gaussian" else math.sqrt(2))
        return total + deviation * variance.sqrt()[:, None] * torch.randn(self._items, d)

    def _metrics_of(self, model: dict[str, Tensor]) -> dict[str, float]:
        count = len(self._lengths)
        copies = {name: model[name].expand(count, *model[name].shape) for name in SHARED}
        copies |= {"user": model["user"], "items": model["items"][self._index]}
        guess = predictions(copies, (self._order < torch.inf).float(), model["items"][self._queries])
        return rating_metrics(guess[self._tested].double().numpy(), self._truth)[0]


def predictions(copies: dict[str, Tensor], mask: Tensor, queries: Tensor) -> Tensor:
    """Return ratings U × Q of queries U × Q × d, by `StarAttention` with each client's parameters."""
    leaves = copies["items"] @ copies["weight"].mT
    user = (copies["weight"] @ copies["user"].unsqueeze(2)).squeeze(2)
    nodes = torch.cat([user.unsqueeze(1), leaves], dim=1)
    present = torch.cat([torch.ones_like(mask[:, :1]), mask], dim=1)
    strength = (nodes * copies["left"].unsqueeze(1)).sum(2) + (user * copies["right"]).sum(1, keepdim=True)
    strength = leaky_relu(strength, NEGATIVE_SLOPE)
    alpha = torch.softmax(strength.masked_fill(present == 0, -torch.inf), dim=1)
    h = (alpha.unsqueeze(-1) * nodes).sum(1) + copies["bias"]
    return torch.sigmoid((queries * h.unsqueeze(1)).sum(-1))


def noise_of(epsilon: float, clip: float = CLIP, mechanism: Mechanism = "gaussian") -> float:
    """Return a row's noise scale at ε: σ with σ² = (2C)²α/(2ε), RDP of order α = 2; Laplace b = 2C/ε."""
    return 2 * clip * (math.sqrt(ORDER / (2 * epsilon)) if mechanism == "gaussian" else 1 / epsilon)


def sample_noise(shape: Sequence[int], mechanism: Mechanism) -> Tensor:
    """Return noise of scale 1."""
    if mechanism == "gaussian":
        return torch.randn(*shape)
    return torch.distributions.Laplace(0.0, 1.0).sample(torch.Size(shape))


def clip_rows(rows: Tensor, clip: float = CLIP, order: int = 2) -> Tensor:
    """Return rows clipped to a norm of that order, at most `clip`."""
    lengths = torch.linalg.vector_norm(rows, ord=order, dim=1, keepdim=True)
    factor: Tensor = clip / lengths.clamp(min=clip)
    return rows * factor


def step_adam(parameter: Tensor, gradient: Tensor) -> Tensor:
    """Return the parameter after Adam's first step with weight decay, which is the sign of its gradient."""
    whole = gradient + DECAY * parameter
    return parameter - RATE * whole / (whole.abs() + 1e-8)


def pad_ratings(people: Sequence[Rated]) -> tuple[Tensor, Tensor, Tensor]:
    """Return items, ratings and ranks of arrival, U × M each; ranks of padding are infinite."""
    shape = len(people), max(1, *(len(rated) for rated in people))
    index, ratings, order = torch.zeros(shape, dtype=torch.int64), torch.zeros(shape), torch.full(shape, torch.inf)
    for u, rated in enumerate(people):
        n = len(rated)
        index[u, :n], ratings[u, :n] = torch.from_numpy(rated.items), torch.from_numpy(rated.values).float()
        order[u, :n] = torch.arange(n)
    return index, ratings, order
