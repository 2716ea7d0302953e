"""IFCA (Ghosh et al. 2020): K models, each the mean of the clients assigned to it."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np
from flwr.app import Message

from common.arrays import Arrays, add_prefix, group, sub
from common.config.run import RunConfig
from common.contribution import Contribution
from common.errors import WireError
from common.methods import clustered
from common.methods.clustered import Clustered
from common.wire.codec import decode
from common.wire.messages import ASSIGN, AssignReply, AssignRequest
from server.aggregation.clusters import assign_clusters, spread_copies
from server.clients.roster import EnrolledClient
from server.exchange.grid import content_of
from server.round.checks import check_assignment
from server.round.method import Assignment, Groups, Method, RoundContext, ServerMethod, Talk
from server.round.state import RunState

log = logging.getLogger("fedloom.server")


class ClusterAssignment(Assignment):
    """Assignment of clients to K models, by the scores that clients report.

    In secure sums each client receives all K models and chooses one itself.

    Args:
        options: Options of the method.
        criterion: Score of a model: its loss on the client's data, or the violation of the client's property.
        properties: Names of the arrays of a client's property that are stored.
    """

    def __init__(
        self, options: Clustered, criterion: Literal["loss", "property"] = "loss", properties: tuple[str, ...] = ()
    ) -> None:
        self.options, self.criterion, self.properties = options, criterion, properties

    def start(self, state: RunState, config: RunConfig) -> RunState:
        """Return the state with K models; a resumed run has them."""
        if group("0", state.model):
            return state
        return replace(state, model=spread_copies(state.model, self.options.clusters, self.options.spread, config.seed))

    def model_for(self, at: RoundContext, client: str) -> Arrays:
        """Return θ_j of the client's cluster j; all K models if the client chooses."""
        return at.state.model if at.is_summed else group(str(self.group_of(at.state, client)), at.state.model)

    def group_of(self, state: RunState, client: str) -> int:
        """Return j; 0 for a client without assignment."""
        return int(state.memory.get("cluster", {}).get(client, 0))

    def groups(self, state: RunState) -> dict[str, int]:
        """Return client -> cluster."""
        return clusters_of(state.memory)

    def prepare(
        self, at: RoundContext, clients: Mapping[str, EnrolledClient], talk: Talk, *, training: bool
    ) -> RunState:
        """Assign the training clients that are due, or the evaluating clients without assignment."""
        if at.is_summed:
            return at.state
        due = [client for name, client in sorted(clients.items()) if self._is_due(at, name, training)]
        replies = self._request_scores(at, due, talk)
        keys = [str(j) for j in range(self.options.clusters)]
        losses = {name: [reply.losses[key] for key in keys] for name, reply in replies.items()}
        assigned: Arrays = {name: np.array(j) for name, j in assign_clusters(losses, self.options.assign).items()}
        state, stored = at.state.memory, self.properties if training else ("days",)
        described = {key: {n: r.property[key] for n, r in replies.items() if key in r.property} for key in stored}
        changes: Groups = {"cluster": assigned, **described}
        if training:  # assignments for an evaluation do not affect later rounds, nor a resumed run
            changes["since"] = dict.fromkeys(assigned, np.array(at.number))
        merged = {key: {**state.get(key, {}), **values} for key, values in changes.items()}
        memory = {**state, **{key: values for key, values in merged.items() if values}}
        return replace(at.state, memory=memory)

    def accept_scores(self, at: RoundContext, reply: AssignReply) -> AssignReply:
        """Return a client's reply with the scores of the K models.

        Raises:
            WireError: The reply is not valid.
        """
        return check_assignment(reply, at.number, self.options.clusters)

    def _is_due(self, at: RoundContext, client: str, training: bool) -> bool:
        state = at.state.memory
        if not training:  # evaluation spends no privacy budget
            return not at.cost and client not in state.get("cluster", {})
        since = state.get("since", {}).get(client)
        return since is None or at.number - int(since) >= self.options.recluster_every

    def _request_scores(self, at: RoundContext, clients: list[EnrolledClient], talk: Talk) -> dict[str, AssignReply]:
        """Return the assignment scores of the K models, of every client with a valid reply."""
        replies, requests = dict[str, AssignReply](), dict[str, AssignRequest]()
        statics = at.state.statics if self.criterion == "loss" else {}

        def request(client: EnrolledClient) -> AssignRequest:
            if client.enrolment not in requests:
                requests[client.enrolment] = AssignRequest(
                    at.number, client.enrolment, at.state.model, self.criterion, at.cost, statics
                )
            return requests[client.enrolment]

        for message in talk.send(clients, ASSIGN, request):
            name = talk.enrolment.roster.name(message.metadata.src_node_id)
            try:
                replies[name] = self._read(at, message, talk)
            except WireError as error:
                log.warning("%s: cluster not updated: %s", name, error)
        talk.enrolment.ledgers.store()
        return dict(sorted(replies.items()))

    def _read(self, at: RoundContext, message: Message, talk: Talk) -> AssignReply:
        reply = self.accept_scores(at, decode(AssignReply, content_of(message)))
        if at.cost:
            talk.enrolment.ledgers.note(message.metadata.src_node_id, reply.ledger)
        return reply


class ClusteredStep(Method):
    """Step of several models: θ_j ← θ_j − mean of Δ_k over cluster j; an empty cluster keeps its model.

    A secure sum holds the means of the clusters by name, `j/parameter`. In it a cluster of fewer than `secure-sums.min-sum`
    clients keeps its model.
    """

    def __init__(self, assignment: Assignment) -> None:
        self.assignment = assignment

    def update(self, at: RoundContext, state: Groups, model: Arrays, total: Contribution) -> tuple[Arrays, Groups]:
        """Return θ_j − mean of Δ_k for every cluster j."""
        if at.is_summed:
            step = total.mean_update()
            return {**model, **sub({name: model[name] for name in step}, step)}, state
        return {**model, **step_by_cluster(clusters_of(state), model, total)}, state


def step_by_cluster(clusters: Mapping[str, int], model: Arrays, total: Contribution) -> Arrays:
    """Return the updated layers of every cluster with a reply."""
    members: dict[int, list[str]] = {}
    for name in total.names:
        members.setdefault(clusters.get(name, 0), []).append(name)
    updated: Arrays = {}
    for j, names in sorted(members.items()):
        step, before = total.select(names).mean_update(), group(str(j), model)
        updated |= add_prefix(str(j), sub({name: before[name] for name in step}, step))
    return updated


def clusters_of(memory: Groups) -> dict[str, int]:
    """Return client -> cluster, of the assigned clients."""
    return {client: int(j) for client, j in sorted(memory.get("cluster", {}).items())}


METHOD = ServerMethod(clustered.METHOD, lambda options: ClusteredStep(ClusterAssignment(options)))
