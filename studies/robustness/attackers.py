"""Clients that attack: sessions that send false replies, and false training data."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from client.data.dataset import AnyDataset
from client.session import Session
from client.tasks.rules.data.homes import Home, as_edges
from client.tasks.sessions.data.visitors import Visitor
from client.training.local_round import train
from client.training.participant import Participant
from common.arrays import Arrays, scale
from common.errors import FedloomError
from common.tasks.registry import TASKS
from common.wire.messages import EvaluateReply, EvaluateRequest, TrainReply, TrainRequest
from server.round.checks import ALWAYS_POSSIBLE_WEIGHT
from studies.robustness.cases import (
    ALIE,
    FLIPPED,
    FLIPPED_GRADIENT,
    FLIPPED_UPDATE,
    LABELS,
    METRICS,
    QUALITY,
    SCALED,
    WITHIN,
    Case,
)

FACTORS = {
    SCALED: (100.0, 100.0),
    WITHIN: (-5.0, -5.0),
    FLIPPED: (-1.0, -1.0),
    FLIPPED_UPDATE: (-1.0, 1.0),
    FLIPPED_GRADIENT: (1.0, -1.0),
}
"""Attack -> factors on the honest update and on the honest gradient."""

DEVIATIONS = 1.5
"""Number z of standard deviations of ALIE, as in its authors' experiments on MNIST."""

Work = Callable[[], TrainReply]


class Attacker(Session):
    """Session with the data and the state of an honest client.

    Args:
        honest: Session of that client.
    """

    def __init__(self, honest: Session) -> None:
        super().__init__(honest.client, honest.build_learner, honest.store, honest.releaser)

    def passes_unchanged(self, participant: Participant) -> bool:
        """Return False: `release` makes the reply false."""
        return False


class Scaler(Attacker):
    """Client that multiplies its honest update and, in methods that send one, its honest gradient."""

    def __init__(self, honest: Session, update: float, gradient: float) -> None:
        super().__init__(honest)
        self._update, self._gradient = update, gradient

    def release(self, participant: Participant, work: Work) -> TrainReply:
        """Return the reply with false arrays."""
        reply = super().release(participant, work)
        return replace(reply, update=scale(reply.update, self._update), gradient=scale(reply.gradient, self._gradient))


class Boaster(Attacker):
    """Client that claims the best possible metrics, with the largest weight that a server always accepts."""

    def evaluate(self, request: EvaluateRequest) -> EvaluateReply:
        """Return false metrics."""
        reply, task = super().evaluate(request), TASKS[self.config(request.enrolment).task]
        best = {}
        for name in {**reply.metrics, "loss": 0.0, QUALITY: 1.0}:
            spec = task.find_metric(name)
            bound = math.nan if spec is None else spec.high if spec.better == "higher" else max(spec.low, 0.0)
            best[name] = bound if math.isfinite(bound) else reply.metrics[name]
        return replace(reply, metrics=best, weights=dict.fromkeys(best, ALWAYS_POSSIBLE_WEIGHT))


@dataclass
class Plot:
    """Attackers who share their honest updates before anyone sends."""

    number: int = 0
    participants: list[Participant] = field(default_factory=list)
    replies: list[TrainReply] = field(default_factory=list)

    def join(self, participant: Participant) -> None:
        """Add an attacker to the plot of its round."""
        if participant.request.round != self.number:
            self.number, self.participants, self.replies = participant.request.round, [], []
        self.participants.append(participant)

    def learn(self, session: Session) -> Sequence[TrainReply]:
        """Return the honest replies of all attackers in the round."""
        if not self.replies:
            options = session.config(self.participants[0].request.enrolment).method_options
            self.replies = [r for r in train(options, self.participants) if not isinstance(r, FedloomError)]
        return self.replies


class Conspirator(Attacker):
    """Client of ALIE: it sends the mean of the attackers' updates less z deviations.

    Source: Baruch et al. 2019, arXiv 1902.06156.
    """

    def __init__(self, honest: Session, plot: Plot) -> None:
        super().__init__(honest)
        self._plot = plot

    def participant(self, request: TrainRequest) -> Participant:
        """Return the participant, which joins the plot."""
        participant = super().participant(request)
        self._plot.join(participant)
        return participant

    def release(self, participant: Participant, work: Work) -> TrainReply:
        """Return the reply of the plot; its loss and sizes are honest."""
        reply, honest = super().release(participant, work), self._plot.learn(self)
        update, gradient = (shift([getattr(one, name) for one in honest]) for name in ("update", "gradient"))
        return replace(reply, update=update, gradient=gradient)


def shift(updates: Sequence[Arrays]) -> Arrays:
    """Return mean − z · standard deviation of every coordinate."""
    stacked = {name: np.stack([update[name] for update in updates]).astype(np.float64) for name in updates[0]}
    return {n: (a.mean(0) - DEVIATIONS * a.std(0)).astype(updates[0][n].dtype) for n, a in stacked.items()}


def flip_labels(part: AnyDataset, task: str) -> AnyDataset:
    """Return data with false labels: relation r becomes R − 1 − r, every second click i becomes V − 1 − i."""
    change, size = FLIPS[task], len(getattr(part.vocabulary, {"rules": "relations", "sessions": "items"}[task]))
    return replace(part, units=tuple(change(unit, size) for unit in part.units))


def _flip_relations(home: Home, relations: int) -> Home:
    return replace(home, rules=as_edges((i, j, relations - 1 - r) for i, j, r in home.rules.tolist()))


def _flip_clicks(visitor: Visitor, items: int) -> Visitor:
    sessions = [session.copy() for session in visitor.sessions]
    for session in sessions:
        session[1::2] = items - 1 - session[1::2]
    return replace(visitor, sessions=tuple(sessions))


FLIPS: dict[str, Callable[..., Home | Visitor]] = {"rules": _flip_relations, "sessions": _flip_clicks}


def choose_attackers(case: Case, nodes: Sequence[int], seed: int) -> list[int]:
    """Return the nodes of the attackers; those of a small share are among those of a large one."""
    order = np.random.default_rng([seed, len(nodes)]).permutation(nodes)
    return sorted(order[: case.attackers].tolist())


def with_attackers(case: Case, sessions: Mapping[int, Session], attackers: Sequence[int]) -> dict[int, Session]:
    """Return the sessions, of which the attackers' send false replies."""
    plot = Plot()
    return {node: _attacker(case, s, plot) if node in attackers else s for node, s in sessions.items()}


def _attacker(case: Case, honest: Session, plot: Plot) -> Session:
    if case.attack in FACTORS:
        return Scaler(honest, *FACTORS[case.attack])
    if case.attack == ALIE:
        return Conspirator(honest, plot)
    return Boaster(honest) if case.attack == METRICS else honest


def with_false_data(case: Case, parts: Sequence[AnyDataset], attackers: Sequence[int]) -> list[AnyDataset]:
    """Return the clients' data; in a label flip the attackers' have false labels. Node k holds part k − 1."""
    lies = case.attack == LABELS
    return [flip_labels(part, case.task) if lies and k in attackers else part for k, part in enumerate(parts, start=1)]
