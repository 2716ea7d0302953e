"""The sessions task on a client: its sessions as graphs, the cross-entropy of the next item, ranking metrics (§2.6, §2.8)."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call, vmap
from torch.nn.functional import cross_entropy

from client.data.partition import own_rng
from client.stacked_tensors import Tensors, stack
from client.tasks.learner import shell
from client.tasks.sessions.baseline import Known, VisitHistory, features, pad
from client.tasks.sessions.data.graphs import GRAPH, collate
from client.tasks.sessions.data.split import SplitVisitor, cases_of, split_visitor
from client.tasks.sessions.data.visitors import Case, Visits
from common.arrays import Arrays
from common.models import tensors
from common.tasks.sessions.counts import KEYS, VALUES, SharedRules, add_rules, count_rules
from common.tasks.sessions.metrics import ranks, session_metrics
from common.tasks.sessions.options import SessionsOptions
from common.tasks.sessions.task import TASK
from common.tasks.sessions.vocabulary import Clicks, Items
from common.tasks.spec import TaskRun
from common.wire.messages import Metrics, TrainRequest

SCORED_AT_ONCE = 512
"""Test cases scored together: with 40,000 items 80 MB of logits."""


class SessionsLearner:
    """A client's visitors in one run.

    Args:
        run: The run.
        dataset: The client's visitors; each has a history of its own.
    """

    task = TASK.name
    shared: tuple[str, ...] = ()

    def __init__(self, run: TaskRun[SessionsOptions, Items], dataset: Visits) -> None:
        self._options, self._items = run.options, run.vocabulary
        self._blended = run.model == "default"
        self.splits = tuple(split_visitor(visitor, self._options, run.seed) for visitor in dataset.units)
        self.module = shell(TASK, run)
        sessions = [cases_of(session) for split in self.splits for session in split.train]
        self._apart = run.privacy.unit == "record"
        self.size = sum(map(len, sessions))
        self.examples, self.rows = (len(sessions), len(sessions)) if self._apart else (self.size, 0)
        self._graphs = self._together(sessions)
        if self._blended:
            kept = [keep for s in self.splits for keep in _for_blend(s, self._options.blend_share, run.seed)]
            self._graphs["blends"] = torch.tensor(kept, dtype=torch.float32)
        self._lines: dict[str, list[Known]] = {}

    def batch(self, request: TrainRequest) -> Tensors:
        """All training examples: graphs, targets, weights and, for the default model, the local line's features."""
        if not self._blended:
            return self._graphs
        return {**self._graphs, **_padded(self._line("train", request.statics))}

    def step_inputs(self, steps: int, generator: torch.Generator) -> Tensors:
        """Neither network draws anything while it trains."""
        return {}

    def loss(self, params: Tensors, batch: Tensors, noise: Tensors) -> Tensor:
        """L_k: the mean cross-entropy of the next item over the client's examples, or of each session's over its sessions.

        The default model's weights train on a share of the sessions, and its network on the others.
        """
        if not self._apart:
            return self._mean(params, batch)
        real = (batch["weights"].sum(-1) > 0).to(batch["weights"].dtype)
        return (vmap(self._mean, (None, 0))(params, batch) * real).sum() / real.sum().clamp(min=1)

    def _mean(self, params: Tensors, batch: Tensors) -> Tensor:
        target, weights = batch["target"], batch["weights"]
        logits = self._logits(params, batch)
        if self._blended:
            alone, blended = (cross_entropy(each, target, reduction="none") for each in logits)
            losses = torch.where(batch["blends"] > 0, blended, alone)
        else:
            losses = cross_entropy(logits, target, reduction="none")
        return (weights * losses).sum() / weights.sum().clamp(min=1)

    def evaluate(self, model: Arrays, statics: Arrays, split: str) -> tuple[Metrics, Metrics]:
        """Means over the held-out cases, and their number."""
        cases = [case for s in self.splits for case in _held_out(s, split)]
        if not cases:
            return {}, {}
        logits = self.scores(model, statics, split)
        targets = np.array([case.target for case in cases])
        metrics = session_metrics(*_ranked(logits, targets))
        return metrics, dict.fromkeys(metrics, float(len(cases)))

    def scores(self, model: Arrays, statics: Arrays, split: str) -> Iterator[np.ndarray]:
        """Logits of all items for the held-out cases of `split`, in chunks of cases × V."""
        cases = [case for s in self.splits for case in _held_out(s, split)]
        yield from self._scored(tensors(model), cases, self._line(split, statics) if self._blended else [])

    def next_items(self, model: Arrays, statics: Arrays, prefix: Clicks, history: Sequence[Clicks]) -> np.ndarray:
        """Logits of all items, V, after the clicks so far of somebody with that history."""
        line = [features(prefix, VisitHistory.of(history), self._shared(statics))]
        [[logits]] = self._scored(tensors(model), [Case(prefix, 0)], line if self._blended else [])
        scores: np.ndarray = logits
        return scores

    def _scored(self, params: Tensors, cases: Sequence[Case], lines: Sequence[Known]) -> Iterator[np.ndarray]:
        for first in range(0, len(cases), SCORED_AT_ONCE):
            chunk = slice(first, first + SCORED_AT_ONCE)
            batch = self._collate(cases[chunk]) | (_padded(lines[chunk]) if self._blended else {})
            with torch.no_grad():
                logits = self._logits(params, batch)
                yield (logits[-1] if self._blended else logits).numpy()

    def counts(self) -> Arrays:
        """Sequential rules in the training sessions."""
        return count_rules((session for split in self.splits for session in split.train), len(self._items.items))

    def _together(self, sessions: Sequence[Sequence[Case]]) -> Tensors:
        """All examples as one graph; where a record is to be hidden, one graph for each session, side by side."""
        if self._apart and sessions:
            return stack([self._collate(cases) for cases in sessions])
        return self._collate([case for cases in sessions for case in cases])

    def _collate(self, cases: Sequence[Case]) -> Tensors:
        prefixes, targets = [case.prefix for case in cases], [case.target for case in cases]
        return dict(vars(collate(prefixes, targets, self._options.max_length)))

    def _logits(self, params: Tensors, batch: Tensors) -> Any:
        """E × V, or two of them: see `LocalBlend.forward`."""
        graph = tuple(batch[name] for name in GRAPH)
        arguments = (graph, batch["index"], batch["value"]) if self._blended else graph
        return functional_call(self.module, params, arguments)

    def _line(self, what: str, statics: Arrays) -> list[Known]:
        """Features of every case of a split; the same in all rounds, since neither history nor sums change in a run."""
        if what not in self._lines:
            if what == "train" and KEYS in statics:
                statics = self._others(statics)
            shared = self._shared(statics)
            self._lines[what] = [row for split in self.splits for row in _rows(split, what, shared)]
        return self._lines[what]

    def _others(self, statics: Arrays) -> Arrays:
        """The sums without its own part, if that is in them: an answer that came too late is not."""
        own = self.counts()
        lacking = add_rules([own, statics], [1.0, -1.0])[KEYS].size
        return statics if lacking else add_rules([statics, own], [1.0, -1.0])

    def _shared(self, statics: Arrays) -> SharedRules | None:
        return SharedRules(statics[KEYS], statics[VALUES], len(self._items.items)) if KEYS in statics else None


def _rows(split: SplitVisitor, what: str, shared: SharedRules | None) -> Iterator[Known]:
    history = VisitHistory.of(split.train)
    if what != "train":
        for case in _held_out(split, what):
            yield features(case.prefix, history, shared)
        return
    for session in split.train:
        before = history.without(session)
        for case in cases_of(session):
            yield features(case.prefix, before, shared)


def _for_blend(split: SplitVisitor, share: float, seed: int) -> list[bool]:
    """Which examples belong to the sessions that the blend is learnt on, drawn by (seed, name)."""
    drawn = own_rng(seed, f"blend of {split.visitor.name}").random(len(split.train)) < share
    return [bool(keep) for keep, session in zip(drawn, split.train, strict=True) for _ in session[1:]]


def _held_out(split: SplitVisitor, what: str) -> tuple[Case, ...]:
    return split.test if what == "test" else split.validation


def _padded(rows: Sequence[Known]) -> Tensors:
    index, value = pad(rows)
    return {"index": torch.from_numpy(index), "value": torch.from_numpy(value)}


def _ranked(chunks: Iterator[np.ndarray], targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rank of each target and −log of its probability."""
    places, losses, first = [], [], 0
    for logits in chunks:
        wanted = targets[first : first + len(logits)]
        first += len(logits)
        places.append(ranks(logits, wanted))
        log_sum = np.logaddexp.reduce(logits.astype(np.float64), axis=1)
        losses.append(log_sum - logits[np.arange(len(wanted)), wanted])
    return np.concatenate(places), np.concatenate(losses)
