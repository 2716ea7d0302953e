"""Cohorts of a hub's clients: their training, and the sum of their replies."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from client.trainers.registry import build_trainer
from client.training.participant import Participant, split_cohort
from common.arrays import Arrays, Floats
from common.config.run import RunConfig
from common.contribution import (
    GRADIENT,
    UPDATE,
    Contribution,
    Lengths,
    Member,
    find_doubtful,
    rows_of_lengths,
)
from common.errors import RefusedError
from common.methods.base import MethodOptions
from common.wire.encodings import unpack_reply
from common.wire.hubs import SumBlob, write_sum
from common.wire.messages import TrainReply, TrainRequest
from common.wire.sparse_rows import expand_reply

Cohort = Sequence[tuple[str, Participant]]
"""Clients that train together, with their names."""

TrainCohorts = Callable[[MethodOptions, Sequence[Cohort]], Iterable[Sequence[TrainReply | Exception]]]
"""Returns the outcome of each client of each cohort, or raises a RunError and changes no state."""


def split(ready: list[tuple[str, Participant]], together: int) -> Iterator[Cohort]:
    """Yield cohorts of clients with equal steps and data of similar size, which need little padding."""
    ready.sort(key=lambda pair: (pair[1].steps, pair[1].learner.size))
    for _, equal in groupby(ready, key=lambda pair: pair[1].steps):
        yield from split_cohort(list(equal), lambda pair: pair[1].learner, together)


ALONE = RefusedError("sums alone may have this client's update, and it would be alone, or is far longer than others")


class HubSum:
    """Sum over the clients of a hub that answer one request.

    Args:
        request: The request.
        reference: Typical lengths of the hub's last sum.
        sums_only: Clients whose update leaves the hub inside a sum with another one, or not at all.
    """

    def __init__(self, request: TrainRequest, reference: Lengths, sums_only: Collection[str] = ()) -> None:
        self._model, self._reference, self._sums_only = request.model, reference, sums_only
        self._total = Contribution()

    @property
    def lengths(self) -> list[Lengths]:
        """Lengths of each reply in the sum."""
        return [member.lengths for member in self._total.members]

    def add(self, config: RunConfig, replies: Mapping[str, TrainReply]) -> dict[str, TrainReply | RefusedError]:
        """Add the replies of clients that trained together; return what each of them sends.

        A reply that the server may leave out is sent as it is, or refused if sums alone may have it.

        Args:
            config: Configuration of the run.
            replies: Client -> its reply.
        """
        if not replies:
            return {}
        encoding, like = config.federation.encoding, build_trainer(config.method_options).template(self._model)
        whole = {name: expand_reply(unpack_reply(reply, encoding), like) for name, reply in replies.items()}
        lengths = {UPDATE: _lengths([reply.update for reply in whole.values()])}
        if any(reply.gradient for reply in whole.values()):
            lengths[GRADIENT] = _lengths([reply.gradient for reply in whole.values()])
        limits = np.full(len(whole), config.federation.norm_bound)
        losses = np.array([reply.loss for reply in whole.values()])
        doubtful = {*find_doubtful(self._reference, limits, lengths, losses)}
        sent: dict[str, TrainReply | RefusedError] = {}
        for k, ((name, reply), lengths_of_reply) in enumerate(
            zip(whole.items(), rows_of_lengths(lengths), strict=True)
        ):
            if k in doubtful:
                sent[name] = ALONE if name in self._sums_only else replies[name]
            else:
                self._add(config, name, reply, lengths_of_reply)
                sent[name] = replace(reply, update={}, gradient={})
        return sent

    def refuse_alone(self) -> dict[str, RefusedError]:
        """Remove a sum with the update of one client alone, if sums alone may have it; return its error."""
        names = [member.name for member in self._total.members]
        if len(names) != 1 or names[0] not in self._sums_only:
            return {}
        self._total = self._total.empty()
        return {names[0]: ALONE}

    def blob(self) -> SumBlob | None:
        """Return the sum; None if it has no clients."""
        if not self._total:
            return None
        return SumBlob(tuple(member.name for member in self._total.members), write_sum(self._total))

    def _add(self, config: RunConfig, name: str, reply: TrainReply, lengths: Lengths) -> None:
        if not self._total:
            capabilities = config.capabilities
            self._total = Contribution(per_step=capabilities.per_step, magnitude=capabilities.needs_magnitude)
        weight = config.method_options.weight(reply.examples)
        self._total.add(Member(name, weight, reply.steps, reply.loss, lengths), reply.update, reply.gradient)


def _stack(members: Sequence[Arrays]) -> Arrays:
    return {name: np.stack([member[name] for member in members]) for name in members[0]}


def _lengths(members: Sequence[Arrays]) -> Floats:
    """Return the L2 norm of each member."""
    squares = [np.square(a.reshape(len(a), -1), dtype=np.float64).sum(1) for a in _stack(members).values()]
    return np.sqrt(sum(squares, np.zeros(len(members))))
