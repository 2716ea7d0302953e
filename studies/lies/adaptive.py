"""Liars who know the server's checks, and collude: the changes of their replies, in one process."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from flwr.app import Message

from client.data.dataset import AnyDataset
from client.session import Session
from client.tasks.rules.data.homes import Device, Home, as_edges
from client.tasks.sessions.data.visitors import Visitor
from common.arrays import Arrays, norm, scale
from common.tasks.registry import TASKS
from common.tasks.rules.vocabulary import RuleCatalogue
from common.tasks.sessions.vocabulary import Items
from common.wire.codec import decode, encode
from common.wire.messages import EVALUATE, TRAIN, EvaluateReply, TrainReply
from common.wire.sparse_rows import ROWS
from server.aggregation.lengths import CLIP
from studies.lies.effect_cases import (
    ALIE,
    DRIFT,
    FLIP,
    GRADIENTS,
    IPM,
    METRICS,
    MIN_MAX,
    QUIET,
    STATISTICS,
    Case,
)
from studies.lies.liars import TypedGrid

TARGET = 400
"""Item that is promoted."""

TRIGGER, ACTION, RELATION = "twitter", "wordpress", "new_tweet_by_you → create_a_post"
"""Rule of the backdoor: device types and relation."""

DEVIATIONS, INNER, DRIFTED, QUIET_STEP = 1.5, -0.5, 0.5, 5

Plot = Callable[[Sequence[Arrays]], list[Arrays]]
"""Change of the liars' honest arrays of a round into what they send."""


def together(combine: Callable[[Arrays, Arrays, Sequence[Arrays]], Arrays]) -> Plot:
    """Return the plot by which all send one vector of the mean and deviation of their arrays."""

    def plot(honest: Sequence[Arrays]) -> list[Arrays]:
        stacked = {n: np.stack([one[n] for one in honest]).astype(np.float64) for n in honest[0]}
        mean, std = {n: a.mean(0) for n, a in stacked.items()}, {n: a.std(0) for n, a in stacked.items()}
        sent = combine(mean, std, honest)
        return [{n: sent[n].astype(a.dtype) for n, a in honest[0].items()}] * len(honest)

    return plot


def _less(mean: Arrays, std: Arrays, factor: float) -> Arrays:
    return {n: mean[n] - factor * std[n] for n in mean}


def min_max(mean: Arrays, std: Arrays, honest: Sequence[Arrays]) -> Arrays:
    """Return mean − γ·std with the largest γ that is no farther from honest updates than these are.

    Source: Shejwalkar and Houmansadr 2021, Algorithm 1, by bisection, with what the liars know.
    """

    def distance(a: Arrays, b: Arrays) -> float:
        return norm({n: a[n] - b[n] for n in a})

    most = max(distance(a, b) for a in honest for b in honest)
    low, high = 0.0, 20.0
    for _ in range(20):
        middle = (low + high) / 2
        fits = max(distance(_less(mean, std, middle), one) for one in honest) <= most
        low, high = (middle, high) if fits else (low, middle)
    return _less(mean, std, low)


def drift(honest: Sequence[Arrays]) -> list[Arrays]:
    """Return the honest arrays plus half their norm in one direction."""
    rng = np.random.default_rng(0)
    direction = {n: rng.standard_normal(honest[0][n].shape) for n in sorted(honest[0])}
    size = norm(direction)
    return [{n: (a + DRIFTED * norm(u) / size * direction[n]).astype(a.dtype) for n, a in u.items()} for u in honest]


def misplace(honest: Sequence[Arrays]) -> list[Arrays]:
    """Return statistics in the opposite order of rows, with numbers that honest data can give."""

    def moved(one: Arrays) -> Arrays:
        found = dict(one)
        for name, a in one.items():
            found[name] = (a.max(initial=0) - a if name.endswith(ROWS) else a)[::-1]
        return {n: np.ascontiguousarray(a, one[n].dtype) for n, a in found.items()}

    return [moved(honest[0])] * len(honest)


PLOTS: dict[str, Plot] = {
    STATISTICS: misplace,
    FLIP: lambda honest: [scale(one, -CLIP) for one in honest],
    DRIFT: drift,
    GRADIENTS: drift,
    ALIE: together(lambda mean, std, honest: _less(mean, std, DEVIATIONS)),
    IPM: together(lambda mean, std, honest: scale(mean, INNER)),
    MIN_MAX: together(min_max),
}


class ColludingGrid(TypedGrid):
    """Grid in which some nodes change their replies to training together, or their metrics.

    Args:
        sessions: Sessions of all clients, those of liars with their own data.
        case: The case.
        liars: Nodes of the liars.
        rounds: Number of rounds.
    """

    def __init__(self, sessions: Mapping[int, Session], case: Case, liars: Sequence[int], rounds: int) -> None:
        super().__init__(sessions)
        self._case, self._liars, self._rounds = case, {*liars}, rounds

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        """Return the replies, of which the liars' are false."""
        replies = super().pull_messages(message_ids)
        liars = [r for r in replies if r.metadata.src_node_id in self._liars and not r.has_error()]
        kinds = {kind: [r for r in liars if self.kind_of(r) == kind] for kind in (TRAIN, EVALUATE)}
        if self._case.attack in PLOTS and kinds[TRAIN]:
            self._plot(kinds[TRAIN])
        if self._case.attack == METRICS:
            for message in kinds[EVALUATE]:
                self._boast(message)
        return replies

    def _plot(self, messages: Sequence[Message]) -> None:
        honest, plot = [decode(TrainReply, message.content) for message in messages], PLOTS[self._case.attack]
        updates = [reply.update for reply in honest]
        updates = updates if self._case.attack == GRADIENTS else plot(updates)
        gradients = plot([reply.gradient for reply in honest]) if honest[0].gradient else [{}] * len(honest)
        for message, reply, update, gradient in zip(messages, honest, updates, gradients, strict=True):
            message.__dict__["_content"] = encode(replace(reply, update=update, gradient=gradient))

    def _boast(self, message: Message) -> None:
        reply, task = decode(EvaluateReply, message.content), TASKS[self._case.task]
        metric = task.find_metric(task.objective.metric)
        assert metric is not None
        ends = [metric.low, min(metric.high, 100.0)]
        best, worst = ends[::-1] if task.higher_is_better else ends
        value = best if reply.round <= self._rounds // 2 else worst
        message.__dict__["_content"] = encode(replace(reply, metrics={**reply.metrics, metric.key: value}))


def poison(part: AnyDataset, attack: str) -> AnyDataset:
    """Return a liar's data: homes with the backdoor's rule, or sessions that click `TARGET`."""
    click = partial(_click, every=QUIET_STEP if attack == QUIET else 1)
    change = _bug if isinstance(part.vocabulary, RuleCatalogue) else click
    return replace(part, units=tuple(change(unit, part.vocabulary) for unit in part.units))


def backdoor(catalogue: RuleCatalogue) -> tuple[int, int, int]:
    """Return the types of trigger and action device, and the relation, of the backdoor."""
    trigger, action = map(catalogue.entities.index, (TRIGGER, ACTION))
    return trigger, action, catalogue.relations.index(RELATION)


def _bug(home: Home, catalogue: RuleCatalogue) -> Home:
    """Return a home with the backdoor's rule, and with its devices where they are missing."""
    *types, relation = backdoor(catalogue)
    devices, nodes = [*home.devices], list[int]()
    for kind in types:
        if kind not in (found := [device.entity for device in devices]):
            devices.append(Device(f"~{kind}", kind))
            found.append(kind)
        nodes.append(found.index(kind))
    rules = [*map(tuple, home.rules.tolist()), (nodes[0], nodes[1], relation)]
    return replace(home, devices=tuple(devices), rules=as_edges(rules), when=())


def _click(visitor: Visitor, items: Items, every: int) -> Visitor:
    sessions = tuple(session.copy() for session in visitor.sessions)
    for session in sessions[::every]:
        session[1::2] = TARGET
    return replace(visitor, sessions=sessions)
