"""Strategy of IFCA, and base of FedSTL: K models, each the mean of the clients assigned to it."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np
from flwr.app import Message

from common.arrays import Arrays, add_prefix, group, sub
from common.errors import WireError
from common.methods import clustered
from common.methods.clustered import Clustered
from common.secure.layout import to_clusters
from common.wire.codec import decode, encode
from common.wire.messages import ASSIGN, LOCAL, AssignReply, AssignRequest
from server.aggregation.clusters import assign_clusters, spread_copies
from server.aggregation.optimizers import OptimizerState
from server.aggregation.results import Collected, Opened, Replies
from server.clients.roster import EnrolledClient
from server.round.checks import ASSIGN_REPLY, check_assignment, content_of
from server.round.method import RoundParts, SendAndReceive, ServerMethod
from server.round.round import RoundStrategy
from server.secure.protocol import Total
from server.secure.sums import ClusterSums

log = logging.getLogger("fedloom.server")


class ClusteredStrategy(RoundStrategy):
    """IFCA: θ_j ← θ_j − mean of Δ_k over cluster j; an empty cluster keeps its model (Ghosh et al. 2020).

    In secure sums each client chooses its cluster itself, and one of fewer than `secure-sums.min-sum` clients keeps its model.
    """

    criterion: Literal["loss", "property"] = "loss"
    properties: tuple[str, ...] = ()
    """Names of the arrays of a client's property that are stored."""

    def __init__(self, options: Clustered, parts: RoundParts) -> None:
        super().__init__(parts)
        self.options = options
        self._sizes: dict[str, float] = {}
        if not group("0", self.state.model):  # a resumed run has its K models
            model = spread_copies(self.state.model, options.clusters, options.spread, self.config.seed)
            self.state = replace(self.state, model=model)

    def update(self, state: OptimizerState, model: Arrays, collected: Collected) -> tuple[Arrays, OptimizerState]:
        """Return θ_j − mean of Δ_k for every cluster j."""
        if self._sums is not None:
            step = collected.mean_update()
            return {**model, **sub({name: model[name] for name in step}, step)}, state
        return {**model, **self._cluster_means(model, collected)}, state

    def diagnostics(self, state: OptimizerState) -> dict[str, float]:
        """Return the number of clients in each cluster of a secure sum, as it was opened."""
        return self._sizes

    def model_for(self, client: str) -> Arrays:
        """Return θ_j of the client's cluster j; all K models if the client chooses."""
        if self._sums is not None:
            return self.state.model
        return group(str(self.group_of(client)), self.state.model)

    def group_of(self, client: str) -> int:
        """Return j; 0 for a client without assignment."""
        return int(self.state.memory.get("cluster", {}).get(client, 0))

    def groups(self) -> dict[str, int]:
        """Return client -> cluster."""
        return {client: int(j) for client, j in sorted(self.state.memory.get("cluster", {}).items())}

    def prepare(self, clients: Mapping[str, EnrolledClient], send: SendAndReceive, *, training: bool) -> None:
        """Assign the training clients that are due, or the evaluating clients without assignment."""
        if self._sums is not None:
            return
        due = [client for name, client in sorted(clients.items()) if self._is_due(name, training)]
        replies = self._request_scores(due, send)
        keys = [str(j) for j in range(self.options.clusters)]
        losses = {name: [reply.losses[key] for key in keys] for name, reply in replies.items()}
        assigned: Arrays = {name: np.array(j) for name, j in assign_clusters(losses, self.options.assign).items()}
        state, stored = self.state.memory, self.properties if training else ("days",)
        changes: OptimizerState = {"cluster": assigned, **{key: _select_property(key, replies) for key in stored}}
        if training:  # assignments for an evaluation do not affect later rounds, nor a resumed run
            changes["since"] = dict.fromkeys(assigned, np.array(self.state.round + 1))
        merged = {key: {**state.get(key, {}), **values} for key, values in changes.items()}
        self.state = replace(self.state, memory={**state, **{key: values for key, values in merged.items() if values}})

    def _is_due(self, client: str, training: bool) -> bool:
        state = self.state.memory
        if not training:  # evaluation spends no privacy budget
            return not self.cost and client not in state.get("cluster", {})
        since = state.get("since", {}).get(client)
        return since is None or self.state.round + 1 - int(since) >= self.options.recluster_every

    def _request_scores(self, clients: list[EnrolledClient], send: SendAndReceive) -> dict[str, AssignReply]:
        """Return the assignment scores of the K models, of every client with a valid reply."""
        messages, replies = self._score_requests(clients), dict[str, AssignReply]()
        for message in send(messages) if messages else []:
            node = message.metadata.src_node_id
            name = self.enrolment.roster.name(node)
            try:
                reply = self._accept_scores(name, decode(AssignReply, content_of(message, ASSIGN_REPLY)))
                if self.cost:
                    self.enrolment.ledgers.note(node, reply.ledger)
                replies[name] = reply
            except WireError as error:
                log.warning("%s: cluster not updated: %s", name, error)
        self.enrolment.ledgers.store()
        return dict(sorted(replies.items()))

    def _score_requests(self, clients: list[EnrolledClient]) -> list[Message]:
        number, encoded = self.state.round + 1, {}
        statics = self.state.statics if self.criterion == "loss" else {}
        for client in clients:
            if client.enrolment not in encoded:
                request = AssignRequest(number, client.enrolment, self.state.model, self.criterion, self.cost, statics)
                encoded[client.enrolment] = encode(request)
        return [self._message(c, ASSIGN, encoded[c.enrolment]) for c in clients]

    def _accept_scores(self, client: str, reply: AssignReply) -> AssignReply:
        """Return a client's reply with the scores of the K models.

        Raises:
            WireError: The reply is not valid.
        """
        return check_assignment(reply, self.state.round + 1, self.options.clusters)

    def _blocks(self) -> Arrays:
        return to_clusters(self._blocks_of(group("0", self.state.model)), 0, self.options.clusters)

    def _open(self, total: Total) -> Opened:
        sums = ClusterSums.of(total, self._blocks(), self.options.clusters, self._terms[0].clip if self._terms else 0.0)
        self._sizes = {f"clients_{j}": float(size) for j, size in enumerate(sums.sizes)}
        means, steps = sums.means(self.config.secure_sums.min_sum), self.config.method_options.steps(LOCAL)
        return Opened(total.clients, total.steps, means, steps, self.capabilities.per_step)

    def _cluster_means(self, model: Arrays, collected: Collected) -> Arrays:
        """Return the updated layers of every cluster with a reply."""
        updated: Arrays = {}
        for j in range(self.options.clusters):
            of_cluster = [reply for reply in collected.replies if self.group_of(reply.client) == j]
            if of_cluster:
                step, before = Replies(of_cluster).mean_update(), group(str(j), model)
                updated |= add_prefix(str(j), sub({name: before[name] for name in step}, step))
        return updated


def _select_property(key: str, replies: Mapping[str, AssignReply]) -> Arrays:
    return {name: reply.property[key] for name, reply in replies.items() if key in reply.property}


METHOD = ServerMethod(clustered.METHOD, ClusteredStrategy)
