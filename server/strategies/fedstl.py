"""FedSTL on the server (Algorithms 1 and 2); mirror of `FedSTLTrainer`. Private heads never come here."""

import logging
from collections.abc import Mapping
from dataclasses import replace

from common.arrays import Arrays, group
from common.methods import fedstl
from common.methods.fedstl import FedSTL
from common.tasks.traffic.ranges import POOLED
from common.tasks.traffic.task import TASK
from common.wire.codec import encode
from common.wire.messages import CLUSTER, TRAIN, TrainRequest
from server.aggregation.clusters import pool_ranges
from server.aggregation.pooled_properties import pool_neighbors
from server.roster import EnrolledClient
from server.strategies.base import Ask
from server.strategies.clustered import ClusteredStrategy
from server.strategies.replies import Reply
from server.strategies.spec import RoundParts, ServerMethod

log = logging.getLogger("fedloom.server")


class FedSTLStrategy(ClusteredStrategy):
    """Clusters by L_p(φ_i, Ŷ_j); after the mean of the members, κ steps on F_j by the members and their mean again."""

    criterion = "property"

    def __init__(self, algorithm: FedSTL, parts: RoundParts) -> None:
        super().__init__(algorithm, parts)
        self.kappa = algorithm.cluster_steps

    def prepare(self, clients: Mapping[str, EnrolledClient], ask: Ask, *, training: bool) -> None:
        """Assign clients to clusters, and pool the properties of those that have told theirs."""
        super().prepare(clients, ask, training=training)
        if training and not self.cost:  # noised bounds, and the widest of several, would tell a newcomer nothing
            low, high = ({n: a for n, a in self._told(bound).items() if not self._new(n)} for bound in ("low", "high"))
            self.state = replace(
                self.state, statics={**_without_pooled(self.state.statics), **pool_neighbors(low, high)}
            )

    def statics_for(self, client: str) -> Arrays:
        """Newcomers are told the pooled properties, the others have their own."""
        return self.state.statics if self._new(client) else _without_pooled(self.state.statics)

    def polish(self, model: Arrays, replies: list[Reply]) -> Arrays:
        """Cluster epochs: F_j = MSE + λ·L_p(φ_j) over the shared layers, on the members' own data (§3.7)."""
        if self.kappa == 0:
            return model
        online = {client.name: client for client in self.enrolment.roster.clients.values()}
        asked = [online[reply.client] for reply in replies if reply.client in online]
        made = {
            key: encode(self._cluster_request(model, *key))
            for key in {(c.enrolment, self.group_of(c.name)) for c in asked}
        }
        messages = [self._message(c, TRAIN, made[c.enrolment, self.group_of(c.name)]) for c in asked]
        usable, rejected = self._sort(self._ask(messages), CLUSTER)
        for name, reason in sorted(rejected.items()):
            log.warning("%s: left out of the cluster epochs: %s", name, reason)
        return {**model, **self._means(model, usable)}

    def _cluster_request(self, model: Arrays, enrolment: str, cluster: int) -> TrainRequest:
        members = [client for client, j in self.groups().items() if j == cluster]
        low, high = ([self._told(bound).get(name) for name in members] for bound in ("low", "high"))
        known = [(a, b) for a, b in zip(low, high, strict=True) if a is not None and b is not None]
        phi = pool_ranges([a for a, _ in known], [b for _, b in known]) if known else {}
        return TrainRequest(
            round=self.state.round + 1,
            enrolment=enrolment,
            model=group(str(cluster), model),
            shared=phi,
            statics=_without_pooled(self.state.statics),
            phase=CLUSTER,
            cost=self.cost,
            clip=self.clip,
        )

    def _told(self, key: str) -> Arrays:
        """What clients have told of their properties, by their names."""
        return self.state.memory.get(key, {})

    def _new(self, client: str) -> bool:
        """Whether a client has said that it has too few days to know by itself what it obeys."""
        days = self._told("days").get(client)
        return days is not None and int(days.max()) < self.config.options_of(TASK).newcomer_days


def _without_pooled(statics: Arrays) -> Arrays:
    return {name: a for name, a in statics.items() if name not in POOLED}


def build_strategy(options: FedSTL, parts: RoundParts) -> FedSTLStrategy:
    """Build the strategy; `cluster_data=shared_sample` clusters on windows that clients send."""
    if not options.capabilities().shared_windows:
        return FedSTLStrategy(options, parts)
    from server.strategies.fedstl_shared_windows import SharedWindowsStrategy  # a subclass

    return SharedWindowsStrategy(options, parts)


METHOD = ServerMethod(fedstl.METHOD, build_strategy)
