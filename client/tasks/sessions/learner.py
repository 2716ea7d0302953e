"""Sessions learner: session graphs, next-item cross-entropy, metrics (algorithms.md §2.5 to §2.8).

The default model blends network and history; its softmax is full or sampled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, compress, islice, repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from client.data.dataset import own_rng
from client.tasks.learner import GatheredBatch, HasModule, means
from client.tasks.sessions.baseline import (
    TOP,
    FeatureRows,
    ItemFeatures,
    VisitHistory,
    baseline_hits,
    by_visitor,
    compute_ranks,
    held_out,
    history_features,
    scores_of,
)
from client.tasks.sessions.data.visitors import GRAPH, Case, SplitVisitor, Visits, cases_of, graph_arrays, split_visitor
from client.training.foresight import derive
from client.training.stacks import Tensors, at, cross_entropies, stack
from common.arrays import Arrays, Floats, Ints
from common.models import tensors
from common.tasks.sessions import slist
from common.tasks.sessions.options import SessionsOptions
from common.tasks.sessions.task import TASK, session_metrics
from common.tasks.sessions.task import Floats as Scores
from common.tasks.sessions.vocabulary import Clicks, Items
from common.tasks.spec import TaskRun
from common.wire.messages import Metrics, TrainRequest

if TYPE_CHECKING:
    from torch import Tensor


def features_of_split(split: SplitVisitor, part: str, rows: slist.Rows | None) -> Iterator[ItemFeatures]:
    """Yield the features of every case in a part of a visitor's sessions."""
    history = VisitHistory.of(split.train)
    if part != "train":
        for case in held_out(split, part):
            yield history_features(case.prefix, history, rows)
        return
    for session in split.train:
        before = history.without(session)
        for case in cases_of(session):
            yield history_features(case.prefix, before, rows)


def drawn_sessions(split: SplitVisitor, share: float, seed: int) -> list[bool]:
    """Return True for each training session for the blend weights; sessions are drawn by (seed, name)."""
    is_drawn: list[bool] = (own_rng(seed, f"blend of {split.visitor.name}").random(len(split.train)) < share).tolist()
    return is_drawn


def blend_flags(split: SplitVisitor, share: float, seed: int) -> list[bool]:
    """Return True for each example of a session for the blend weights."""
    is_drawn = drawn_sessions(split, share, seed)
    return [keep for keep, session in zip(is_drawn, split.train, strict=True) for _ in session[1:]]


def hidden_features(split: SplitVisitor, is_hidden: Sequence[bool]) -> Iterator[slist.HiddenClick]:
    """Yield the features of the clicks of hidden sessions, without the session in the visitor's history."""
    history = VisitHistory.of(split.train)
    for session in compress(split.train, is_hidden):
        before = history.without(session)
        for case in cases_of(session):
            features = history_features(case.prefix, before)
            yield case.prefix, features.items, features.values, case.target


def pad_features(rows: FeatureRows) -> Tensors:
    """Return the tensors `index` and `value` of the features, zero-padded."""
    index, value = rows.pad()
    return {"index": torch.from_numpy(index), "value": torch.from_numpy(value)}


WEIGHTS, BLENDED, BLEND_WEIGHTS = "item_weights", "blended_examples", "blend_weights"
"""Batch tensors, padded with 0.

Weight of each gathered item, R − 1; examples that train the blend, and 1 for each of them.
"""


CLOSED = "closed"
"""Batch tensor: logits of all items by the closed form, under which the network trains, E × V."""


def own_items(batch: Tensors, features: FeatureRows) -> Tensor:
    """Return the items of training examples and of their history features, ascending."""
    clicked = [batch["nodes"][batch["nodes"] > 0].numpy() - 1, batch["target"].numpy()]
    return torch.from_numpy(np.unique(np.concatenate([*clicked, features.items])))


def gather_items(
    table: str, items: int, negatives: int, client_items: Tensor, batch: Tensors, generator: torch.Generator
) -> GatheredBatch:
    """Return the batch over the rows of own items and of `negatives` items drawn from the others.

    Args:
        table: Name of the item table; item j is row j + 1, and row 0 is padding.
        items: Number V of items.
        negatives: Number of items to draw without replacement, or all others if they are fewer.
        client_items: Own items.
        batch: Training data with `nodes`, `target` and, for the default model, `index`.
        generator: Random generator of the client's round.
    """
    is_other = torch.ones(items, dtype=torch.bool)
    is_other[client_items] = False
    others = is_other.nonzero().flatten()
    drawn = others[torch.randperm(len(others), generator=generator)[:negatives]]
    gathered = torch.cat([client_items, drawn]).sort().values
    weights = torch.where(is_other[gathered], len(others) / max(1, len(drawn)), 1.0)
    row_of = torch.zeros(items + 1, dtype=torch.int64)
    row_of[gathered + 1] = torch.arange(1, len(gathered) + 1)
    placed = {"nodes": row_of[batch["nodes"]], "target": row_of[batch["target"] + 1] - 1}
    if CLOSED in batch:
        placed[CLOSED] = batch[CLOSED][:, gathered]
    if "index" in batch:
        # padding may name an item that was not gathered
        placed["index"] = (row_of[batch["index"] + 1] - 1).clamp(min=0)
    rows = torch.cat([torch.zeros(1, dtype=torch.int64), gathered + 1]).numpy()
    return GatheredBatch({table: rows}, {**batch, **placed, WEIGHTS: weights})


def select_blended(batch: Tensors, features: FeatureRows) -> Tensors:
    """Return the batch with the history features of the examples that train the blend, and these examples."""
    is_blend = batch["blends"] > 0
    examples, padded = is_blend.nonzero().flatten(), pad_features(features[is_blend.numpy()])
    return {**batch, **padded, BLENDED: examples, BLEND_WEIGHTS: torch.ones(len(examples))}


def sampled_loss(network: Tensor, params: Tensors, batch: Tensors) -> Tensor:
    """Return the mean over examples of the loss, estimated from gathered items.

    Args:
        network: Logits of the network, E × (R − 1).
        params: Parameters of the model; those of the blend are used if the batch has history features.
        batch: Gathered batch.
    """
    from common.tasks.sessions.model import blend

    log_weights, weights = batch[WEIGHTS].log(), batch["weights"]
    closed = batch.get(CLOSED, torch.zeros(()))
    losses = _cross_entropies(network + closed, batch["target"], log_weights)
    if BLENDED not in batch:
        return (weights * losses).sum() / weights.sum().clamp(min=1)
    of_network = (weights * (1 - batch["blends"]) * losses).sum()
    scores = network.detach().index_select(0, batch[BLENDED])
    blended = blend(params["scale"], params["weight"], scores, batch["index"], batch["value"])
    blended = blended + closed.index_select(0, batch[BLENDED]) if CLOSED in batch else blended
    of_blend = _cross_entropies(blended, batch["target"].index_select(0, batch[BLENDED]), log_weights)
    return (of_network + (batch[BLEND_WEIGHTS] * of_blend).sum()) / weights.sum().clamp(min=1)


def _cross_entropies(logits: Tensor, target: Tensor, log_weights: Tensor) -> Tensor:
    """Return the logarithm of the weighted sum of exponentials minus the target's logit."""
    return (logits + log_weights).logsumexp(-1) - logits.gather(-1, target.unsqueeze(-1)).squeeze(-1)


@dataclass(frozen=True)
class ExampleBatch:
    """Batch of E examples with N clicks, K edges and M − 1 distinct items of examples."""

    nodes: Tensor
    """A padding node, then the distinct items of each example as rows of the embedding (item + 1), M."""
    edges: Tensor
    """From node to node, 2 × K: one edge for an example's pair of items, however often they follow."""
    w_in: Tensor
    """A_in = (M D_col⁻¹)ᵀ at each edge, K."""
    w_out: Tensor
    """A_out = D_row⁻¹ M at each edge, K."""
    clicks: Tensor
    """Node of each click, example after example, N."""
    owner: Tensor
    """Its example, from 1, N; 0 where clicks are padded to another client's."""
    last: Tensor
    """Node of each example's last click, E; the padding node of one without clicks."""
    target: Tensor
    """The next item, E."""
    weights: Tensor
    """1, and 0 where a client's examples are padded to another's, E."""

    @property
    def graph(self) -> tuple[Tensor, ...]:
        """Arrays that `GRAPH` names."""
        return tuple(getattr(self, name) for name in GRAPH)


def collate(prefixes: Sequence[Clicks], targets: Sequence[int], max_length: int) -> ExampleBatch:
    """Return the graphs of all examples; of a longer prefix, the last `max_length` clicks count."""
    arrays = graph_arrays(prefixes, max_length)
    return ExampleBatch(
        **{name: torch.from_numpy(a) for name, a in arrays.items()},
        target=torch.from_numpy(np.array(targets, np.int64)),
        weights=torch.ones(len(prefixes)),
    )


SCORE_CASES = 512
"""Number of test cases scored together; with 40,000 items their logits take 80 MB."""


class SessionsLearner(HasModule):
    """Learner of the sessions task: a client's visitors in one run."""

    task = TASK.name
    shared: tuple[str, ...] = ()

    def __init__(self, run: TaskRun[SessionsOptions, Items], dataset: Visits) -> None:
        self._options, self._items = run.options, run.vocabulary
        self._blended = run.model == "default"
        self.row_numbers = len(self._items.items) if self._options.loss != "sampled" else 0
        self.splits = tuple(split_visitor(visitor, self._options, run.seed) for visitor in dataset.units)
        super().__init__(TASK, run)
        sessions = [len(session[1:]) for split in self.splits for session in split.train]
        self._separates_records = run.privacy.unit == "record"
        self.size = sum(sessions)
        self.examples, self.rows = (len(sessions), len(sessions)) if self._separates_records else (self.size, 0)
        self._client_items: Tensor | None = None
        self._closed: Tensor | None = None
        self._noised = run.privacy.unit != "none"
        self._seed = run.seed
        self._hits: dict[str, tuple[Floats, Floats]] = {}
        self._features: dict[str, FeatureRows] = {}

    def batch(self, request: TrainRequest) -> Tensors:
        """Return all training examples: graphs, targets, weights and, for the default model, history features."""
        features = pad_features(self._features_of("train", request.statics)) if self._blended else {}
        return self._graphs | features | self._closed_examples(request.statics)

    def gather(self, request: TrainRequest, generator: torch.Generator) -> GatheredBatch | None:
        """Return all training examples over own and drawn items under `loss=sampled`."""
        if self._options.loss != "sampled":
            return None
        features = self._features_of("train", request.statics) if self._blended else FeatureRows.of([])
        if self._client_items is None:
            self._client_items = own_items(self._graphs, features)
        table = "network.embedding.weight" if self._blended else "embedding.weight"
        batch = select_blended(self._graphs, features) if self._blended else self._graphs
        batch = batch | self._closed_examples(request.statics)
        return gather_items(
            table, len(self._items.items), self._options.negatives, self._client_items, batch, generator
        )

    def step_inputs(self, steps: int, generator: torch.Generator) -> Tensors:
        """Return no step inputs: training steps are deterministic."""
        return {}

    def loss(self, params: Tensors, batch: Tensors, inputs: Tensors) -> Tensor:
        """Compute L_k, the mean cross-entropy of the next item over the client's examples.

        If sessions are separate records, L_k is the mean over sessions of each session's mean. In the default model the
        blend weights train on the share `blend-share` of the sessions and the network trains on the rest. Gathered
        batches give an estimate from own and drawn items.
        """
        if WEIGHTS in batch:
            return sampled_loss(self._network_logits(params, batch), params, batch)
        if not self._separates_records:
            return self._mean_loss(params, batch)
        real = (batch["weights"].sum(-1) > 0).to(batch["weights"].dtype)
        if self.unstacked:
            each = torch.stack([self._mean_loss(params, at(batch, k)) for k in range(len(real))])
        else:
            each = torch.func.vmap(self._mean_loss, (None, 0))(params, batch)
        return (each * real).sum() / real.sum().clamp(min=1)

    def _mean_loss(self, params: Tensors, batch: Tensors) -> Tensor:
        target, weights = batch["target"], batch["weights"]
        logits = self._logits(params, batch)
        if self._blended:
            closed = batch.get(CLOSED, torch.zeros(()))
            network_loss, blend_loss = (cross_entropies(each + closed, target) for each in logits)
            losses = torch.where(batch["blends"] > 0, blend_loss, network_loss)
        else:
            losses = cross_entropies(logits, target)
        return (weights * losses).sum() / weights.sum().clamp(min=1)

    def evaluate(self, model: Arrays, statics: Arrays, split: str) -> tuple[Metrics, Metrics]:
        """Return the mean of each metric over the held-out cases, and their number."""
        metrics = session_metrics(*self._ranks(model, statics, split))
        return metrics, dict.fromkeys(metrics, float(len(self._targets(split))))

    def baselines(self, split: str, statics: Arrays) -> tuple[Metrics, Metrics]:
        """Return HR@20 of the visitors' own histories and of recency, and their number of cases."""
        by_history, by_recency = self._baseline_hits(split)
        pairs = zip(by_history.tolist(), by_recency.tolist(), strict=True)
        return means([{"hr20_history": history, "hr20_recency": recency} for history, recency in pairs])

    def _ranks(self, model: Arrays, statics: Arrays, split: str) -> tuple[Scores, Scores]:
        """Return the rank of each held-out click, and −log of its probability."""

        def ranks(_: Tensor) -> tuple[Scores, Scores]:
            return compute_ranks(self.scores(model, statics, split), self._targets(split))

        return derive(self, split, model, statics, ranks)

    def record_values(self, model: Arrays, statics: Arrays, split: str) -> list[Floats]:
        """Return 1 for each held-out click among the first 20 items, else 0; NaN of a model that diverged."""
        places, _ = self._ranks(model, statics, split)
        return by_visitor(np.where(np.isnan(places), np.nan, places <= TOP), self.splits, split)

    def baseline_values(self, statics: Arrays, split: str) -> dict[str, list[Floats]]:
        """Return the same by each visitor's own history, and by recency."""
        pairs = zip(TASK.baselines, self._baseline_hits(split), strict=True)
        return {name: by_visitor(hits, self.splits, split) for name, hits in pairs}

    def _baseline_hits(self, split: str) -> tuple[Floats, Floats]:
        if split not in self._hits:
            self._hits[split] = baseline_hits(self.splits, split)
        return self._hits[split]

    def _targets(self, split: str) -> Ints:
        return np.array([case.target for s in self.splits for case in held_out(s, split)], np.int64)

    def scores(self, model: Arrays, statics: Arrays, split: str) -> Iterator[np.ndarray]:
        """Yield logits of all items for the held-out cases of `split`, in chunks of cases × V."""
        cases = [case for s in self.splits for case in held_out(s, split)]
        closed: Iterator[np.ndarray] = repeat(np.zeros((), np.float32))
        if slist.is_solved(statics):
            scores = scores_of(statics)
            rows = (case for one in self.splits for case in features_of_split(one, split, scores))
            closed = self._closed_scores(statics, rows)
        if not model:
            yield from closed
            return
        features = self._features_of(split, statics) if self._blended else FeatureRows.of([])
        for network, rest in zip(self._score_cases(tensors(model), cases, features), closed, strict=False):
            yield network + rest

    def next_items(self, model: Arrays, statics: Arrays, prefix: Clicks, history: Sequence[Clicks]) -> np.ndarray:
        """Return logits of all items, V, after the clicks `prefix` of a visitor with that history."""
        row = history_features(prefix, VisitHistory.of(history), scores_of(statics))
        closed = slist.logits(statics, row.items, row.values) if slist.is_solved(statics) else np.zeros((), np.float32)
        if not model:
            return closed
        [[logits]] = self._score_cases(tensors(model), [Case(prefix, 0)], FeatureRows.of([row]))
        scores: np.ndarray = logits + closed
        return scores

    def _closed_examples(self, solved: Arrays) -> Tensors:
        """Return the closed form's logits of the training examples, constant in a run.

        Own sessions stay in the sums.
        """
        if not slist.is_solved(solved):
            return {}
        if self._closed is None:
            rows = scores_of(solved)
            cases = (case for one in self.splits for case in features_of_split(one, "train", rows))
            none = np.zeros((0, len(self._items.items)), np.float32)
            self._closed = torch.from_numpy(np.concatenate([none, *self._closed_scores(solved, cases)]))
        return {CLOSED: self._closed}

    def _closed_scores(self, solved: Arrays, rows: Iterator[ItemFeatures]) -> Iterator[np.ndarray]:
        """Yield logits by the closed form, in chunks of cases × V."""
        while chunk := [slist.logits(solved, row.items, row.values) for row in islice(rows, SCORE_CASES)]:
            yield np.stack(chunk)

    def _score_cases(self, params: Tensors, cases: Sequence[Case], features: FeatureRows) -> Iterator[np.ndarray]:
        for first in range(0, len(cases), SCORE_CASES):
            chunk = slice(first, first + SCORE_CASES)
            batch = self._collate(cases[chunk]) | (pad_features(features[chunk]) if self._blended else {})
            with torch.no_grad():
                logits = self._logits(params, batch)
                yield (logits[-1] if self._blended else logits).numpy()

    def statistics(self, solved: Arrays) -> Arrays:
        """Return the sums over this client's visitors of what `slist` needs next.

        Raises:
            WireError: What is solved is not of this vocabulary.
        """
        slist.check(solved, self._items, noised=self._noised)
        hidden = [drawn_sessions(split, self._options.blend_share, self._seed) for split in self.splits]
        pairs = list(zip(self.splits, hidden, strict=True))
        visitors = (slist.VisitorSessions(split.train, flags) for split, flags in pairs)
        clicks = chain.from_iterable(hidden_features(split, flags) for split, flags in pairs)
        return slist.statistics(solved, visitors, clicks)

    @cached_property
    def _graphs(self) -> Tensors:
        """All examples as one graph, or as stacked graphs of single sessions if sessions are records."""
        sessions = [cases_of(session) for split in self.splits for session in split.train]
        if self._separates_records and sessions:
            graphs = stack([self._collate(cases) for cases in sessions])
        else:
            graphs = self._collate([case for cases in sessions for case in cases])
        if self._blended:
            is_blend = [keep for s in self.splits for keep in blend_flags(s, self._options.blend_share, self._seed)]
            graphs["blends"] = torch.tensor(is_blend, dtype=torch.float32)
        return graphs

    def _collate(self, cases: Sequence[Case]) -> Tensors:
        prefixes, targets = [case.prefix for case in cases], [case.target for case in cases]
        return dict(vars(collate(prefixes, targets, self._options.max_length)))

    def _logits(self, params: Tensors, batch: Tensors) -> Any:
        """Compute logits, E × V, or two such tensors for the default model (see `LocalBlend.forward`)."""
        graph = tuple(batch[name] for name in GRAPH)
        arguments = (graph, batch["index"], batch["value"]) if self._blended else graph
        return torch.func.functional_call(self.module, params, arguments)

    def _network_logits(self, params: Tensors, batch: Tensors) -> Any:
        """Compute logits of the network alone, E × V."""
        inner = {n.removeprefix("network."): p for n, p in params.items()} if self._blended else params
        network = self.module.get_submodule("network" if self._blended else "")
        return torch.func.functional_call(network, inner, tuple(batch[name] for name in GRAPH))

    def _features_of(self, part: str, statics: Arrays) -> FeatureRows:
        """Return features of every case of a split; constant in a run, therefore computed once."""
        if part not in self._features:
            rows = scores_of(statics)
            cases = (case for split in self.splits for case in features_of_split(split, part, rows))
            self._features[part] = FeatureRows.of(cases)
        return self._features[part]
