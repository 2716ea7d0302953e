"""Rules learner: homes as padded tensors, objective of Eq 2, metrics (algorithms.md §1.5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
import torch

from client.tasks.learner import HasModule, StackedLoss, means
from client.tasks.rules.data.homes import Examples, Homes, SplitHome, split_homes
from client.tasks.rules.lists import Candidates, ListOptions, shared_abilities
from client.training.foresight import ask
from client.training.stacks import Tensors
from common.arrays import Arrays, Floats, Ints
from common.tasks.rules import ease
from common.tasks.rules.metrics import SHOWN_LISTS, SHOWN_TOPS, home_metrics, shown_hits, shown_metrics
from common.tasks.rules.options import RulesOptions
from common.tasks.rules.task import TASK
from common.tasks.rules.vocabulary import Edges, RuleCatalogue
from common.tasks.spec import TaskRun
from common.wire.messages import Metrics, TrainRequest

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class HomeBatch:
    """H homes padded to N nodes and E training examples each.

    A home's loss L_k is Σ weights · BCE over its examples, a batch's the mean of L_k over `home_mask`. With one pool of
    negatives L_k is Eq 2, the mean over E⁺ ∪ E⁻; with more, the negatives share the weight that one pool has.
    """

    x: Tensor
    """(H, N, F) float32, one-hot type of each node."""
    adj: Tensor
    """(H, N, N) float32, adj[h, v, u] = number of training rules u → v: row v counts v's in-neighbours."""
    edges: Tensor
    """(H, E, 3) int64, training rules and non-rules: trigger node, action node, relation."""
    labels: Tensor
    """(H, E) float32, 1 for rules."""
    weights: Tensor
    """(H, E) float32, summing to 1 in each home of `home_mask`; 0 where padded and in all other homes."""
    home_mask: Tensor
    """(H,) bool, homes that have a training rule."""


def collate(splits: Sequence[SplitHome], entities: int) -> HomeBatch:
    """Return one batch of all homes, `entities` = F, padded to the largest home."""
    homes, nodes = len(splits), max((len(split.home.devices) for split in splits), default=0)
    edges = most_examples(splits)
    batch = HomeBatch(
        x=torch.zeros(homes, nodes, entities),
        adj=torch.zeros(homes, nodes, nodes),
        edges=torch.zeros(homes, edges, 3, dtype=torch.int64),
        labels=torch.zeros(homes, edges),
        weights=torch.zeros(homes, edges),
        home_mask=torch.zeros(homes, dtype=torch.bool),
    )
    for h, split in enumerate(splits):
        _fill_graph_(batch, h, split)
        if len(split.train.positives):
            _fill_examples_(batch, h, split)
    return batch


def most_examples(splits: Sequence[SplitHome]) -> int:
    """Return the largest number E of training examples of a home."""
    return max((len(split.train.positives) + len(split.train.negatives) for split in splits), default=0)


def _fill_graph_(batch: HomeBatch, h: int, split: SplitHome) -> None:
    entity = torch.tensor([device.entity for device in split.home.devices], dtype=torch.int64)
    trigger, action, _ = torch.from_numpy(split.train.positives).unbind(1)
    batch.x[h, torch.arange(len(entity)), entity] = 1
    batch.adj[h].index_put_((action, trigger), torch.ones(len(trigger)), accumulate=True)


def _fill_examples_(batch: HomeBatch, h: int, split: SplitHome) -> None:
    positives, negatives = len(split.train.positives), len(split.train.negatives)
    total, one_pool = positives + negatives, min(positives, negatives)
    batch.edges[h, :positives] = torch.from_numpy(split.train.positives)
    batch.edges[h, positives:total] = torch.from_numpy(split.train.negatives)
    batch.labels[h, :positives] = 1
    batch.weights[h, :positives] = 1 / (positives + one_pool)
    batch.weights[h, positives:total] = one_pool / max(negatives, 1) / (positives + one_pool)
    batch.home_mask[h] = True


CLOSED = "closed"
"""Batch tensor: log-odds of the examples by the closed form, under which the network trains, H × E."""


Listed = tuple[np.ndarray, dict[int, Edges]]
"""Logits of every possible rule of a home, N × N × R, and the lists by them, by length."""


class RulesLearner(HasModule):
    """Learner of the rules task: a client's homes in one run.

    Args:
        run: View of the run's configuration.
        dataset: Homes of the client; homes without a training rule take part in evaluation only.
    """

    task = TASK.name
    shared: tuple[str, ...] = ()

    def __init__(self, run: TaskRun[RulesOptions, RuleCatalogue], dataset: Homes) -> None:
        self._options, self._catalogue = run.options, run.vocabulary
        self._noised, self._paper = run.privacy.unit != "none", run.model == "paper"
        self.splits = split_homes(dataset.units, len(run.vocabulary.relations), self._options, run.seed)
        super().__init__(TASK, run)
        self.examples = sum(len(split.train.positives) > 0 for split in self.splits)
        self._closed: Tensor | None = None
        self._baselines: dict[tuple[str, str, int], tuple[Metrics, Metrics]] = {}
        self._candidates: dict[int, Candidates] = {}
        self.rows = len(self.splits)
        self.size = self.rows * most_examples(self.splits)

    @cached_property
    def _batch(self) -> HomeBatch:
        return collate(self.splits, len(self._catalogue.entities))

    def batch(self, request: TrainRequest) -> Tensors:
        """Return all homes, zero-padded (see `HomeBatch`), on top of a closed form with its log-odds."""
        closed = {CLOSED: self._closed_examples(request.statics)} if ease.is_solved(request.statics) else {}
        return {**vars(self._batch), **closed}

    @property
    def tables(self) -> frozenset[str]:
        """Names of the parameters with one row per relation.

        They are those of the predictor, but not of its first layer.
        """
        names = (name for name, _ in self.module.named_parameters())
        return frozenset(n for n in names if n.startswith("predictor.") and not n.startswith("predictor.first."))

    @cached_property
    def touched(self) -> Ints:
        """Relations of the training examples, ascending."""
        return np.unique(self._batch.edges[..., 2].numpy())

    def batch_on(self, request: TrainRequest, rows: Tensor) -> Tensors:
        """Return all homes as `batch` does, for the logits of these relations alone."""
        return {**self.batch(request), "edges": self._edges_on_touched}

    @cached_property
    def _edges_on_touched(self) -> Tensor:
        local = torch.searchsorted(torch.from_numpy(self.touched), self._batch.edges[..., 2].contiguous())
        return torch.cat([self._batch.edges[..., :2], local.unsqueeze(-1)], dim=-1)

    def step_inputs(self, steps: int, generator: torch.Generator) -> Tensors:
        """Sample dropout masks, steps × H × N × hidden, divided by the probability of keeping."""
        homes, nodes, _ = self._batch.x.shape
        keep_rate = 1 - self._options.dropout
        uniform = torch.rand((steps, homes, nodes, self._options.hidden), generator=generator)
        return {"keep": uniform.lt_(keep_rate).div_(keep_rate)}

    def loss(self, params: Tensors, batch: Tensors, inputs: Tensors) -> Tensor:
        """Compute L_k, the mean over homes of each home's binary cross-entropy (Eq 2)."""
        logits = self._logits(params, batch, inputs["keep"], batch["edges"])
        logits = logits + batch[CLOSED] if CLOSED in batch else logits
        each = torch.nn.functional.binary_cross_entropy_with_logits(logits, batch["labels"], reduction="none")
        per_home = (batch["weights"] * each).sum(-1)
        return (batch["home_mask"] * per_home).sum() / batch["home_mask"].sum().clamp(min=1)

    def stacked_loss(self, params: Tensors, batch: Tensors) -> StackedLoss:
        """Return L_k of K clients by `stacked_logits`, or by `loss` for the paper's network."""
        if self._paper:
            return lambda params, inputs: torch.func.vmap(self.loss)(params, batch, inputs)
        from common.tasks.rules.model import stacked_logits  # it imports PyTorch, which sums do without

        relations = params["predictor.trigger.weight"].shape[1]
        logits = stacked_logits(batch["x"], batch["adj"], batch["edges"], relations)
        homes = batch["home_mask"].sum(-1).clamp(min=1).view(-1, 1, 1)
        labels, weights = batch["labels"].flatten(1), (batch["weights"] / homes).flatten(1)
        closed = batch[CLOSED].flatten(1) if CLOSED in batch else torch.zeros(())

        def losses(params: Tensors, inputs: Tensors) -> Tensor:
            found = logits(params, inputs["keep"]) + closed
            each = torch.nn.functional.binary_cross_entropy_with_logits(found, labels, reduction="none")
            return (weights * each).sum(-1)

        return losses

    def evaluate(self, model: Arrays, statics: Arrays, split: str) -> tuple[Metrics, Metrics]:
        """Return the mean of each metric over homes with held-out rules, and its number of homes."""
        rows = [m for m in self.each_home(model, statics, split) if m is not None]
        return means(rows)

    def baselines(self, split: str, statics: Arrays) -> tuple[Metrics, Metrics]:
        """Return hit rates of the baselines, and their number of homes."""
        metrics: Metrics = {}
        weights: Metrics = {}
        for name, scores in self.predictors(statics).items():
            key = name, split, hash(statics[ease.VALUES].tobytes()) if scores != self.own_scores else 0
            if key not in self._baselines:  # those of a home's own rules are constant in a run
                self._baselines[key] = means(
                    [row for row in self._of_each(split, partial(self._listed, scores)) if row]
                )
            of_homes = self._baselines[key]
            found, counts = (
                {baseline: each[key] for key, baseline in TASK.baselines[name].items() if key in each}
                for each in of_homes
            )
            metrics, weights = metrics | found, weights | counts
        return metrics, weights

    def record_values(self, model: Arrays, statics: Arrays, split: str) -> list[Floats]:
        """Return 1 for each held-out rule in the list that its home is shown, else 0."""
        return self._hits(split, self._answered(model, statics, split))

    def baseline_values(self, statics: Arrays, split: str) -> dict[str, list[Floats]]:
        """Return the same for lists by the baselines."""
        return {
            name: self._hits(split, partial(self._listed, scores)) for name, scores in self.predictors(statics).items()
        }

    def predictors(self, statics: Arrays) -> dict[str, Callable[[SplitHome], np.ndarray]]:
        """Return the scores of a home's possible rules by each baseline that the statics allow, by its name."""
        frequency, popularity = TASK.baselines
        if ease.VECTORS not in statics:
            return {frequency: self.own_scores}
        return {frequency: self.own_scores, popularity: lambda home: ease.popularity(statics, self._triples(home))}

    def own_scores(self, home: SplitHome) -> np.ndarray:
        """Return the log-odds of each relation by its share of a home's training rules, N × N × R."""
        devices, relations = len(home.home.devices), len(self._catalogue.relations)
        counts = np.bincount(home.train.positives[:, 2], minlength=relations) + 0.5
        return np.broadcast_to(np.log(counts / (counts.sum() + 0.5 - counts)), (devices, devices, relations))

    def each_home(self, model: Arrays, statics: Arrays, split: str) -> list[Metrics | None]:
        """Return the metrics of every home; None for a home without held-out rules."""
        return self._of_each(split, self._answered(model, statics, split))

    def questions(self, kind: str, statics: Arrays) -> Tensors:
        """Return the graphs of the homes with held-out rules."""
        rows = [k for k, home in enumerate(self.splits) if len(_held_out(home, kind).positives)]
        return {"x": self._batch.x[rows], "adj": self._batch.adj[rows]} if rows else {}

    def answer(self, params: Tensors, questions: Tensors) -> Tensor:
        """Return logits of every possible rule of the homes, H × N × N × R."""
        return self._logits(params, questions, torch.ones(()), None)

    def _answered(self, model: Arrays, statics: Arrays, split: str) -> Callable[[SplitHome], Listed]:
        """Return the function from a home with held-out rules to its logits and lists."""
        asked = [id(home) for home in self.splits if len(_held_out(home, split).positives)]
        answer = ask(self, split, model, statics)
        closed = partial(self._closed_scores, statics) if ease.is_solved(statics) else lambda home: np.zeros(())

        def logits(home: SplitHome) -> np.ndarray:
            if not model:
                return closed(home)
            devices = len(home.home.devices)
            return np.asarray(answer.output[asked.index(id(home)), :devices, :devices].numpy() + closed(home))

        def listed(home: SplitHome) -> Listed:
            if id(home) not in answer.derived:
                answer.derived[id(home)] = self._listed(logits, home)
            found: Listed = answer.derived[id(home)]
            return found

        return listed

    def scores(self, params: Tensors, statics: Arrays, home: SplitHome) -> np.ndarray:
        """Return logits of every possible rule of one home, N × N × R; its own rules stay in the sums."""
        closed = self._closed_scores(statics, home) if ease.is_solved(statics) else np.zeros(())
        if not params:
            return closed
        batch = vars(collate([home], len(self._catalogue.entities)))
        with torch.no_grad():
            return np.asarray(self._logits(params, batch, torch.ones(()), None).squeeze(0).numpy() + closed)

    def _closed_scores(self, solved: Arrays, home: SplitHome) -> np.ndarray:
        """Return log-odds by EASE; rules outside the triples of all homes are the least likely."""
        possible = self._triples(home)
        logits = ease.logits(solved, possible, possible[tuple(home.train.positives.T)])
        types = np.array([device.entity for device in home.home.devices], np.int64)
        abilities = shared_abilities(self._catalogue)
        able = abilities.triggers[types][:, None] & abilities.actions[types][None]
        logits[~able] = logits.min(initial=0.0) + ease.OUTSIDE  # what no device of these types can do comes last
        return logits

    def _closed_examples(self, solved: Arrays) -> Tensor:
        """Return log-odds by EASE of the training examples, H × E, each rule as if the home lacked it.

        They are constant once the sums are solved.
        """
        if self._closed is None:
            logits = np.zeros(tuple(self._batch.labels.shape), np.float32)
            for row, home in zip(logits, self.splits, strict=True):
                triples, positives = self._triples(home), len(home.train.positives)
                examples = (triples[tuple(rules.T)] for rules in (home.train.positives, home.train.negatives))
                row[:positives], row[positives : positives + len(home.train.negatives)] = ease.hidden_logits(
                    solved, *examples
                )
            self._closed = torch.from_numpy(logits)
        return self._closed

    def _triples(self, home: SplitHome) -> Ints:
        """Return the id of the triple of each possible rule of a home, N × N × R."""
        types = np.array([device.entity for device in home.home.devices], np.int64)
        pairs = types[:, None] * len(self._catalogue.entities) + types[None, :]
        relations = len(self._catalogue.relations)
        return np.asarray(pairs[..., None] * relations + np.arange(relations), np.int64)

    def statistics(self, solved: Arrays) -> Arrays:
        """Return the sums over this client's homes of what `ease` needs next.

        Raises:
            WireError: What is solved is not of this vocabulary.
        """
        ease.check(solved, self._catalogue, noised=self._noised)
        possible = ((home, self._triples(home)) for home in self.splits)
        return ease.statistics(
            solved, [(triples, triples[tuple(home.train.positives.T)]) for home, triples in possible]
        )

    def _logits(self, params: Tensors, batch: Tensors, keep: Tensor, triples: Tensor | None) -> Tensor:
        logits: Tensor = torch.func.functional_call(self.module, params, (batch["x"], batch["adj"], keep, triples))
        return logits

    def _of_each(self, split: str, listed_of: Callable[[SplitHome], Listed]) -> list[Metrics | None]:
        """Return the metrics of every home by its logits; homes without held-out rules need none."""
        pairs = [(home, _held_out(home, split)) for home in self.splits]
        return [
            self._metrics(home, *listed_of(home), examples) if len(examples.positives) else None
            for home, examples in pairs
        ]

    def _hits(self, split: str, listed_of: Callable[[SplitHome], Listed]) -> list[Floats]:
        """Return a hit or miss of each held-out rule of every home."""
        found = [np.zeros(0)] * len(self.splits)
        for k, home in enumerate(self.splits):
            if len(rules := _held_out(home, split).positives):
                logits, lists = listed_of(home)
                found[k] = shown_hits(logits, lists[SHOWN_TOPS[-1]], rules)
        return found

    def _listed(self, logits_of: Callable[[SplitHome], np.ndarray], home: SplitHome) -> Listed:
        if id(home) not in self._candidates:
            abilities = shared_abilities(self._catalogue)
            self._candidates[id(home)] = Candidates.of(home.home, home.train.positives, abilities)
        logits = logits_of(home)
        return logits, self._candidates[id(home)].lists(logits, SHOWN_LISTS, ListOptions())

    def _metrics(
        self, home: SplitHome, logits: np.ndarray, lists: dict[int, Edges], held_out: Examples
    ) -> Metrics | None:
        rules = home.train.positives
        metrics = home_metrics(
            logits, rules, held_out.positives, held_out.negatives, self_pairs=self._options.hit_self_pairs
        )
        return None if metrics is None else metrics | shown_metrics(logits, lists, held_out.positives)


def _held_out(home: SplitHome, split: str) -> Examples:
    return home.test if split == "test" else home.validation
