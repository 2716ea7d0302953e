"""FedSTL (Algorithms 1 and 2); cold-start clients get pooled properties."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from common.arrays import Array, Arrays, Floats, group
from common.methods import fedstl
from common.methods.fedstl import FedSTL
from common.tasks.traffic.properties import NAMES, POOLED, check_parameters, middle, pool_parameters, templates_of
from common.tasks.traffic.task import TASK
from common.wire.messages import CLUSTER, AssignReply, TrainRequest
from server.aggregation.clusters import pool_ranges
from server.aggregation.replies import add_up
from server.clients.roster import EnrolledClient
from server.methods.ifca import ClusterAssignment, ClusteredStep, step_by_cluster
from server.round.method import RoundContext, ServerMethod, Talk
from server.round.state import RunState

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


class FedSTLAssignment(ClusterAssignment):
    """FedSTL: clusters by L_p(φ_i, Ŷ_j), pooled properties for cold-start clients, and κ steps on F_j."""

    def __init__(self, options: FedSTL) -> None:
        super().__init__(options, options.criterion, ("low", "high", "days", *NAMES))
        self.kappa = options.cluster_steps

    def prepare(
        self, at: RoundContext, clients: Mapping[str, EnrolledClient], talk: Talk, *, training: bool
    ) -> RunState:
        """Assign clients to clusters, and pool the properties that clients have sent."""
        state = super().prepare(at, clients, talk, training=training)
        if not training or at.cost:  # pooled noisy bounds are too wide to be useful
            return state
        cold = {name for name in state.memory.get("days", {}) if _is_cold(at, state, name)}
        low, high = (
            {n: a for n, a in state.memory.get(bound, {}).items() if n not in cold} for bound in ("low", "high")
        )
        return replace(state, statics={**_remove_pooled(state.statics), **pool_neighbors(low, high)})

    def statics_for(self, at: RoundContext, client: str) -> Arrays:
        """Return the statics, with the pooled properties for cold-start clients only."""
        return at.state.statics if _is_cold(at, at.state, client) else _remove_pooled(at.state.statics)

    def refine(self, at: RoundContext, model: Arrays, clients: Sequence[str], talk: Talk) -> Arrays:
        """Return the model after κ steps of the shared layers on F_j = MSE + λ·L_p(φ_j), by clients (§3.7)."""
        if self.kappa == 0:
            return model
        online = {client.name: client for client in talk.enrolment.roster.clients.values()}
        cohort = [online[name] for name in clients if name in online]
        requests = {
            key: self._cluster_request(at, model, *key)
            for key in {(client.enrolment, self.group_of(at.state, client.name)) for client in cohort}
        }
        replies = talk.train(cohort, lambda c: requests[c.enrolment, self.group_of(at.state, c.name)], CLUSTER)
        total = add_up(replies, at.capabilities)
        return {**model, **step_by_cluster(self.groups(at.state), model, total)}

    def accept_scores(self, at: RoundContext, reply: AssignReply) -> AssignReply:
        """Return a client's reply; a property of a template is checked as one.

        Raises:
            WireError: The reply is not valid.
        """
        options = at.config.options_of(TASK)
        if not options.is_over_days():
            return super().accept_scores(at, reply)
        super().accept_scores(at, replace(reply, property={}))
        if reply.property:
            check_parameters(reply.property, options.horizon, with_structure=not at.cost)
        return reply

    def _cluster_request(self, at: RoundContext, model: Arrays, enrolment: str, cluster: int) -> TrainRequest:
        clients = [client for client, j in self.groups(at.state).items() if j == cluster]
        return TrainRequest(
            round=at.number,
            enrolment=enrolment,
            model=group(str(cluster), model),
            shared=_pool(at, clients),
            statics=_remove_pooled(at.state.statics),
            phase=CLUSTER,
            cost=at.cost,
            clip=at.clip,
        )


def _pool(at: RoundContext, clients: list[str]) -> Arrays:
    """Return φ_j, pooled over members with a property; empty under a formula that a user wrote."""
    memory = at.state.memory
    if at.config.options_of(TASK).is_over_days():
        return pool_parameters(list(templates_of(memory, clients).values()))
    low, high = ([memory.get(bound, {}).get(name) for name in clients] for bound in ("low", "high"))
    bounds = [(a, b) for a, b in zip(low, high, strict=True) if a is not None and b is not None]
    return pool_ranges([a for a, _ in bounds], [b for _, b in bounds]) if bounds else {}


def _is_cold(at: RoundContext, state: RunState, client: str) -> bool:
    """Return True if a client reported fewer days of data than a property of its own needs."""
    days = state.memory.get("days", {}).get(client)
    return days is not None and int(days.max()) < at.config.options_of(TASK).newcomer_days


def _remove_pooled(statics: Arrays) -> Arrays:
    return {name: a for name, a in statics.items() if name not in POOLED}


METHOD = ServerMethod(fedstl.METHOD, lambda options: ClusteredStep(FedSTLAssignment(options)))
