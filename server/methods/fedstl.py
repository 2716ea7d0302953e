"""Strategy of FedSTL (Algorithms 1 and 2); private heads stay on the clients, and cold-start clients get pooled properties."""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from common.arrays import Array, Arrays, Floats, group
from common.methods import fedstl
from common.methods.fedstl import FedSTL
from common.tasks.traffic.properties import NAMES, POOLED, check_parameters, middle, pool_parameters, templates_of
from common.tasks.traffic.task import TASK
from common.wire.codec import encode
from common.wire.messages import CLUSTER, TRAIN, AssignReply, TrainRequest
from server.aggregation.clusters import pool_ranges
from server.aggregation.results import Replies
from server.clients.roster import EnrolledClient
from server.methods.ifca import ClusteredStrategy
from server.round.method import RoundParts, SendAndReceive, ServerMethod

MIN_GROUP_SIZE = 5
"""Members of a group; a smaller one would reveal its members.

Source: explore-traffic.md, cold-start clients: the five nearest.
"""


def pool_neighbors(low: Mapping[str, Array], high: Mapping[str, Array]) -> Arrays:
    """Return the weakest property of every group of similar members, G × W × D.

    The keys are the names in `POOLED`. Groups share no member, so combining groups reveals nothing more about a member. The
    result is empty below `MIN_GROUP_SIZE` members.

    Args:
        low: Client -> lower bounds, W × D. Omitted are bounds of a shape other than the most common one, without a finite
            value, or open on a side that `MIN_GROUP_SIZE` members close.
        high: Client -> upper bounds.
    """
    both = {name: np.stack([low[name], high[name]]) for name in sorted(low.keys() & high.keys())}
    shape = Counter(bounds.shape for bounds in both.values()).most_common(1)[0][0] if both else ()
    members = _keep_closed([bounds for bounds in both.values() if bounds.shape == shape and np.isfinite(bounds).any()])
    if len(members) < MIN_GROUP_SIZE:
        return {}
    middles = np.stack([middle(*bounds).ravel() for bounds in members])
    pooled = [pool_ranges(*zip(*(members[k] for k in group), strict=True)) for group in group_nearest(middles)]
    return {name: np.stack([phi[bound] for phi in pooled]) for name, bound in zip(POOLED, ("low", "high"), strict=True)}


def group_nearest(points: Floats) -> list[list[int]]:
    """Return disjoint groups of `MIN_GROUP_SIZE` close points.

    The last group may have up to twice as many less one. The point farthest from the mean of the remaining ones takes its
    nearest ones: a point at the edge has the least choice.
    """
    left, groups = np.arange(len(points)), []
    while len(left) >= 2 * MIN_GROUP_SIZE:
        candidates = points[left]
        farthest = np.square(candidates - candidates.mean(0)).mean(1).argmax()
        order = np.square(candidates - candidates[farthest]).mean(1).argsort(kind="stable")
        groups.append(left[order[:MIN_GROUP_SIZE]].tolist())
        left = np.sort(left[order[MIN_GROUP_SIZE:]])
    return [*groups, left.tolist()]


def _keep_closed(members: Sequence[Array]) -> list[Array]:
    """Return members that have every bound which at least `MIN_GROUP_SIZE` members have.

    A member without such a bound would remove it from its whole group.
    """
    common = np.sum([np.isfinite(bounds) for bounds in members], axis=0) >= MIN_GROUP_SIZE
    return [bounds for bounds in members if np.isfinite(bounds)[common].all()]


log = logging.getLogger("fedloom.server")


class FedSTLStrategy(ClusteredStrategy):
    """FedSTL: clusters by L_p(φ_i, Ŷ_j); after the clusters' means, κ steps on F_j and their means."""

    properties = ("low", "high", "days", *NAMES)

    def __init__(self, options: FedSTL, parts: RoundParts) -> None:
        super().__init__(options, parts)
        self.kappa, self.criterion = options.cluster_steps, options.criterion

    def prepare(self, clients: Mapping[str, EnrolledClient], send: SendAndReceive, *, training: bool) -> None:
        """Assign clients to clusters, and pool the properties that clients have sent."""
        super().prepare(clients, send, training=training)
        if training and not self.cost:  # pooled noisy bounds are too wide to be useful
            low, high = (
                {n: a for n, a in self._properties(bound).items() if not self._is_cold(n)} for bound in ("low", "high")
            )
            pooled = pool_neighbors(low, high)
            self.state = replace(self.state, statics={**_remove_pooled(self.state.statics), **pooled})

    def statics_for(self, client: str) -> Arrays:
        """Return the statics, with the pooled properties for cold-start clients only."""
        return self.state.statics if self._is_cold(client) else _remove_pooled(self.state.statics)

    def refine(self, model: Arrays, clients: list[str]) -> Arrays:
        """Return the model after κ steps of the shared layers on F_j = MSE + λ·L_p(φ_j), by clients (§3.7)."""
        if self.kappa == 0:
            return model
        online = {client.name: client for client in self.enrolment.roster.clients.values()}
        cohort = [online[name] for name in clients if name in online]
        encoded = {
            key: encode(self._cluster_request(model, *key))
            for key in {(c.enrolment, self.group_of(c.name)) for c in cohort}
        }
        messages = [self._message(c, TRAIN, encoded[c.enrolment, self.group_of(c.name)]) for c in cohort]
        usable, rejected = self._split(self._send(messages), CLUSTER)
        for name, reason in sorted(rejected.items()):
            log.warning("%s: left out of the cluster steps: %s", name, reason)
        return {**model, **self._cluster_means(model, Replies(self.combine(usable)))}

    def _cluster_request(self, model: Arrays, enrolment: str, cluster: int) -> TrainRequest:
        clients = [client for client, j in self.groups().items() if j == cluster]
        return TrainRequest(
            round=self.state.round + 1,
            enrolment=enrolment,
            model=group(str(cluster), model),
            shared=self._pooled(clients),
            statics=_remove_pooled(self.state.statics),
            phase=CLUSTER,
            cost=self.cost,
            clip=self.clip,
        )

    def _pooled(self, clients: list[str]) -> Arrays:
        """Return φ_j, pooled over members with a property; empty under a formula that a user wrote."""
        if self.config.options_of(TASK).is_over_days():
            return pool_parameters(list(self.templates(clients).values()))
        low, high = ([self._properties(bound).get(name) for name in clients] for bound in ("low", "high"))
        bounds = [(a, b) for a, b in zip(low, high, strict=True) if a is not None and b is not None]
        return pool_ranges([a for a, _ in bounds], [b for _, b in bounds]) if bounds else {}

    def templates(self, clients: Iterable[str]) -> dict[str, Arrays]:
        """Return client -> its property of a template, of the clients that sent one."""
        return templates_of(self.state.memory, clients)

    def _accept_scores(self, client: str, reply: AssignReply) -> AssignReply:
        """Return a client's reply; a property of a template is checked as one.

        Raises:
            WireError: The reply is not valid.
        """
        options = self.config.options_of(TASK)
        if not options.is_over_days():
            return super()._accept_scores(client, reply)
        super()._accept_scores(client, replace(reply, property={}))
        if reply.property:
            check_parameters(reply.property, options.horizon, with_structure=not self.cost)
        return reply

    def _properties(self, key: str) -> Arrays:
        """Return client -> one array of its property, as sent."""
        return self.state.memory.get(key, {})

    def _is_cold(self, client: str) -> bool:
        """Return True if a client reported fewer days of data than a property of its own needs."""
        days = self._properties("days").get(client)
        return days is not None and int(days.max()) < self.config.options_of(TASK).newcomer_days


def _remove_pooled(statics: Arrays) -> Arrays:
    return {name: a for name, a in statics.items() if name not in POOLED}


METHOD = ServerMethod(fedstl.METHOD, FedSTLStrategy)
