"""Cohorts of a hub's clients: their training, and the sum of their replies."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from client.training.participant import Participant, split_cohort
from common.arrays import Arrays, Floats
from common.config.run import RunConfig
from common.contribution import Folded, Lengths, find_doubtful, rows_of_lengths
from common.errors import RefusedError
from common.methods.base import MethodOptions
from common.wire.encodings import unpack_reply
from common.wire.hubs import GRADIENT, UPDATE, SumBlob, write_sum
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

    Attributes:
        lengths: Lengths of each reply in the sum.
    """

    def __init__(self, request: TrainRequest, reference: Lengths, sums_only: Collection[str] = ()) -> None:
        self._model, self._reference, self._sums_only = request.model, reference, sums_only
        self._members = Counter[int]()
        """Number of local steps -> clients in the sum of that number."""
        self._sums, self._clients = Folded(), list[str]()
        self.lengths: list[Lengths] = []

    def fold(self, config: RunConfig, replies: Mapping[str, TrainReply]) -> dict[str, TrainReply | RefusedError]:
        """Add the replies of clients with equal numbers of steps; return what each of them sends.

        A reply that the server may leave out is sent as it is, or refused if sums alone may have it.

        Args:
            config: Configuration of the run.
            replies: Client -> its reply.
        """
        if not replies:
            return {}
        names = [*replies]
        encoding, model = config.federation.encoding, self._model
        whole = [expand_reply(unpack_reply(reply, encoding), model) for reply in replies.values()]
        lengths = {UPDATE: _lengths([reply.update for reply in whole])}
        if whole[0].gradient:
            lengths[GRADIENT] = _lengths([reply.gradient for reply in whole])
        limits = np.full(len(names), config.federation.norm_bound)
        losses = np.array([reply.loss for reply in whole])
        alone = set(find_doubtful(self._reference, limits, lengths, losses))
        summed = [k for k in range(len(names)) if k not in alone]
        steps = whole[0].steps
        if self._members[steps] + len(summed) == 1 and names[summed[0]] in self._sums_only:
            alone, summed = {*alone, *summed}, []
        if summed:
            self._members[steps] += len(summed)
            self._add(config, [whole[k] for k in summed])
            self._clients += [names[k] for k in summed]
            rows = rows_of_lengths(lengths)
            self.lengths += [rows[k] for k in summed]
        return {
            name: _without_arrays(whole[k]) if k not in alone else ALONE if name in self._sums_only else replies[name]
            for k, name in enumerate(names)
        }

    def blob(self) -> SumBlob | None:
        """Return the sum; None if it has no clients."""
        if not self._clients:
            return None
        lengths = {kind: np.array([one[kind] for one in self.lengths]) for kind in self.lengths[0]}
        return SumBlob(tuple(self._clients), write_sum(self._sums, lengths))

    def _add(self, config: RunConfig, replies: Sequence[TrainReply]) -> None:
        weights = np.array([config.method_options.weight(reply.examples) for reply in replies])
        update, gradient = _stack([r.update for r in replies]), _stack([r.gradient for r in replies])
        magnitude = config.capabilities.needs_magnitude
        self._sums.add(replies[0].steps, weights, update, gradient, with_magnitude=magnitude)


def _without_arrays(reply: TrainReply) -> TrainReply:
    return replace(reply, update={}, gradient={})


def _stack(members: Sequence[Arrays]) -> Arrays:
    return {name: np.stack([member[name] for member in members]) for name in members[0]}


def _lengths(members: Sequence[Arrays]) -> Floats:
    """Return the L2 norm of each member."""
    squares = [np.square(a.reshape(len(a), -1), dtype=np.float64).sum(1) for a in _stack(members).values()]
    return np.sqrt(sum(squares, np.zeros(len(members))))
