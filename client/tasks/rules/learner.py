"""Rules learner: homes as padded tensors, objective of Eq 2, metrics (algorithms.md §1.5)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn.functional import binary_cross_entropy_with_logits

from client.tasks.learner import means, shell
from client.tasks.rules.data.homes import Examples, Homes, SplitHome, split_homes
from client.tasks.rules.lists import ListOptions, shared_abilities, shown
from client.training.stacks import Tensors
from common.arrays import Arrays, Floats, Ints
from common.models import tensors
from common.tasks.rules import ease
from common.tasks.rules.counts import COUNTS, NOISE, OWN, offset_of
from common.tasks.rules.metrics import SHOWN_TOPS, home_metrics, shown_hits, shown_metrics
from common.tasks.rules.options import RulesOptions
from common.tasks.rules.task import TASK
from common.tasks.rules.vocabulary import Edges, RuleCatalogue
from common.tasks.spec import TaskRun
from common.wire.messages import Metrics, TrainRequest


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
    edges = max((len(split.train.positives) + len(split.train.negatives) for split in splits), default=0)
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


COUNT_TOLERANCE = 0.5
"""Difference of counts that is a rounding error; a rule counts 1."""


class RulesLearner:
    """Learner of the rules task: a client's homes in one run.

    Args:
        run: View of the run's configuration.
        dataset: Homes of the client; homes without a training rule take part in evaluation only.
    """

    task = TASK.name
    shared: tuple[str, ...] = ("offset",)

    def __init__(self, run: TaskRun[RulesOptions, RuleCatalogue], dataset: Homes) -> None:
        self._options, self._catalogue = run.options, run.vocabulary
        self._noised = run.privacy.unit != "none"
        self.splits = split_homes(dataset.units, len(run.vocabulary.relations), self._options, run.seed)
        self.module = shell(TASK, run)
        self._batch = collate(self.splits, len(run.vocabulary.entities))
        self.examples = int(self._batch.home_mask.sum())
        self._baselines: dict[tuple[str, str, int], tuple[Metrics, Metrics]] = {}
        self.size, self.rows = self._batch.labels.numel(), len(self._batch.x)

    def batch(self, request: TrainRequest) -> Tensors:
        """Return all homes, zero-padded (see `HomeBatch`), and `offset`, 2 × F × R.

        The offset comes from the counts of the other clients.
        """
        offset = offset_of(self._without_own(request.statics), self._catalogue)
        return {**vars(self._batch), "offset": torch.from_numpy(offset)}

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
        batch = self.batch(request)
        return {**batch, "edges": self._edges_on_touched, "offset": batch["offset"].index_select(2, rows)}

    @cached_property
    def _edges_on_touched(self) -> Tensor:
        local = torch.searchsorted(torch.from_numpy(self.touched), self._batch.edges[..., 2].contiguous())
        return torch.cat([self._batch.edges[..., :2], local.unsqueeze(-1)], dim=-1)

    def step_inputs(self, steps: int, generator: torch.Generator) -> Tensors:
        """Sample dropout masks, steps × H × N × hidden, divided by the probability of keeping."""
        homes, nodes, _ = self._batch.x.shape
        keep_rate = 1 - self._options.dropout
        uniform = torch.rand((steps, homes, nodes, self._options.hidden), generator=generator)
        return {"keep": (uniform < keep_rate).float() / keep_rate}

    def loss(self, params: Tensors, batch: Tensors, inputs: Tensors) -> Tensor:
        """Compute L_k, the mean over homes of each home's binary cross-entropy (Eq 2)."""
        logits = self._logits(params, batch, inputs["keep"], batch["edges"])
        each = binary_cross_entropy_with_logits(logits, batch["labels"], reduction="none")
        per_home = (batch["weights"] * each).sum(-1)
        return (batch["home_mask"] * per_home).sum() / batch["home_mask"].sum().clamp(min=1)

    def evaluate(self, model: Arrays, statics: Arrays, split: str) -> tuple[Metrics, Metrics]:
        """Return the mean of each metric over homes with held-out rules, and its number of homes."""
        rows = [m for m in self.each_home(model, statics, split) if m is not None]
        return means(rows)

    def baselines(self, split: str, statics: Arrays) -> tuple[Metrics, Metrics]:
        """Return hit rates of the baselines, and their number of homes."""
        metrics: Metrics = {}
        weights: Metrics = {}
        for name, scores in self.predictors(statics).items():
            sums = b"".join(statics[key].tobytes() for key in (ease.VALUES, COUNTS) if key in statics)
            key = name, split, hash(sums) if scores != self.own_scores else 0
            if key not in self._baselines:  # those of a home's own rules are constant in a run
                self._baselines[key] = means([row for row in self._of_each(split, scores) if row])
            of_homes = self._baselines[key]
            found, counts = (
                {baseline: each[key] for key, baseline in TASK.baselines[name].items() if key in each}
                for each in of_homes
            )
            metrics, weights = metrics | found, weights | counts
        return metrics, weights

    def record_values(self, model: Arrays, statics: Arrays, split: str) -> list[Floats]:
        """Return 1 for each held-out rule in the list that its home is shown, else 0."""
        params = tensors(model)
        return self._hits(split, lambda home: self.scores(params, statics, home))

    def baseline_values(self, statics: Arrays, split: str) -> dict[str, list[Floats]]:
        """Return the same for lists by the baselines."""
        return {name: self._hits(split, scores) for name, scores in self.predictors(statics).items()}

    def predictors(self, statics: Arrays) -> dict[str, Callable[[SplitHome], np.ndarray]]:
        """Return the scores of a home's possible rules by each baseline that the statics allow, by its name."""
        frequency, popularity = TASK.baselines
        has_sums = ease.VECTORS in statics or COUNTS in statics
        shared = {popularity: lambda home: self.popular_scores(statics, home)} if has_sums else {}
        return {frequency: self.own_scores, **shared}

    def popular_scores(self, statics: Arrays, home: SplitHome) -> np.ndarray:
        """Return the log popularity of each triple in the federation, N × N × R, by its sum or by the counts."""
        if ease.VECTORS in statics:
            return ease.popularity(statics, self._triples(home))
        offset = offset_of({name: a for name, a in statics.items() if name != OWN}, self._catalogue)
        types = np.array([device.entity for device in home.home.devices], np.int64)
        return np.asarray(offset[0][types][:, None] + offset[1][types][None])

    def own_scores(self, home: SplitHome) -> np.ndarray:
        """Return the log-odds of each relation by its share of a home's training rules, N × N × R."""
        devices, relations = len(home.home.devices), len(self._catalogue.relations)
        counts = np.bincount(home.train.positives[:, 2], minlength=relations) + 0.5
        return np.broadcast_to(np.log(counts / (counts.sum() + 0.5 - counts)), (devices, devices, relations))

    def each_home(self, model: Arrays, statics: Arrays, split: str) -> list[Metrics | None]:
        """Return the metrics of every home; None for a home without held-out rules."""
        params = tensors(model)
        return self._of_each(split, lambda home: self.scores(params, statics, home))

    def scores(self, params: Tensors, statics: Arrays, home: SplitHome) -> np.ndarray:
        """Return logits of every possible rule of one home, N × N × R; its own counts stay in the sums."""
        if ease.is_solved(statics):
            return self._closed_scores(statics, home)
        statics = {name: a for name, a in statics.items() if name != OWN}
        batch = {**vars(collate([home], len(self._catalogue.entities)))}
        batch["offset"] = torch.from_numpy(offset_of(statics, self._catalogue))
        with torch.no_grad():
            return self._logits(params, batch, torch.ones(()), None).squeeze(0).numpy()

    def _closed_scores(self, solved: Arrays, home: SplitHome) -> np.ndarray:
        """Return log-odds by EASE; rules outside the triples of all homes are the least likely."""
        possible = self._triples(home)
        logits = ease.logits(solved, possible, possible[tuple(home.train.positives.T)])
        types = np.array([device.entity for device in home.home.devices], np.int64)
        triggers, actions = (mask[types] for mask in self._catalogue.possible())
        able = triggers[:, None] & actions[None]
        logits[~able] = logits.min(initial=0.0) + ease.OUTSIDE  # what no device of these types can do comes last
        return logits

    def _triples(self, home: SplitHome) -> Ints:
        """Return the id of the triple of each possible rule of a home, N × N × R."""
        types = np.array([device.entity for device in home.home.devices], np.int64)
        pairs = types[:, None] * len(self._catalogue.entities) + types[None, :]
        relations = len(self._catalogue.relations)
        return np.asarray(pairs[..., None] * relations + np.arange(relations), np.int64)

    def counts(self) -> Arrays:
        """Count training rules by (trigger type, relation) and (action type, relation), 2 × F × R."""
        counts = np.zeros((2, len(self._catalogue.entities), len(self._catalogue.relations)), np.float32)
        for split in self.splits:
            types = np.array([device.entity for device in split.home.devices])
            rules = split.train.positives
            for side in (0, 1):
                np.add.at(counts[side], (types[rules[:, side]], rules[:, 2]), 1)
        return {COUNTS: counts}

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

    def _without_own(self, statics: Arrays) -> Arrays:
        """Return the sums without this client's counts; unchanged if its reply came too late to be summed.

        Sums with noise come with the client's own part of them.
        """
        if COUNTS not in statics or NOISE in statics:
            return statics
        counts, sent = statics[COUNTS], self.counts()[COUNTS]
        return statics if (counts < sent - COUNT_TOLERANCE).any() else {**statics, COUNTS: counts - sent}

    def _logits(self, params: Tensors, batch: Tensors, keep: Tensor, triples: Tensor | None) -> Tensor:
        logits: Tensor = functional_call(
            self.module, params, (batch["x"], batch["adj"], keep, triples, batch["offset"])
        )
        return logits

    def _of_each(self, split: str, logits_of: Callable[[SplitHome], np.ndarray]) -> list[Metrics | None]:
        """Return the metrics of every home by its logits; homes without held-out rules need none."""
        held_out = [home.test if split == "test" else home.validation for home in self.splits]
        pairs = zip(self.splits, held_out, strict=True)
        return [
            self._metrics(home, logits_of(home), examples) if len(examples.positives) else None
            for home, examples in pairs
        ]

    def _hits(self, split: str, logits_of: Callable[[SplitHome], np.ndarray]) -> list[Floats]:
        """Return a hit or miss of each held-out rule of every home."""
        found = [np.zeros(0)] * len(self.splits)
        for k, home in enumerate(self.splits):
            if len(rules := (home.test if split == "test" else home.validation).positives):
                logits = logits_of(home)
                found[k] = shown_hits(logits, self._listed(home, logits), rules)
        return found

    def _listed(self, home: SplitHome, logits: np.ndarray) -> Edges:
        abilities = shared_abilities(self._catalogue)
        return shown(logits, home.home, home.train.positives, abilities, ListOptions(SHOWN_TOPS[-1]))

    def _metrics(self, home: SplitHome, logits: np.ndarray, held_out: Examples) -> Metrics | None:
        rules = home.train.positives
        metrics = home_metrics(
            logits, rules, held_out.positives, held_out.negatives, self_pairs=self._options.hit_self_pairs
        )
        if metrics is None:
            return None
        return metrics | shown_metrics(logits, self._listed(home, logits), held_out.positives)
