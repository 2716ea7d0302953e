"""IFCA on the server, and what FedSTL shares with it: K models, each the mean of the clients that it suits best."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np

from common.arrays import Arrays, add_prefix, group, sub
from common.errors import WireError
from common.methods import clustered
from common.methods.clustered import Clustered
from common.wire.codec import decode, encode
from common.wire.messages import ASSIGN, AssignReply, AssignRequest
from server.aggregation.clusters import assign_clusters, spread_copies
from server.aggregation.optimizers import OptimizerState
from server.roster import EnrolledClient
from server.strategies.base import Ask
from server.strategies.replies import Reply, check_assignment, content_of, mean_update
from server.strategies.round import RoundStrategy
from server.strategies.spec import RoundParts, ServerMethod

log = logging.getLogger("fedloom.server")


class ClusteredStrategy(RoundStrategy):
    """θ_j ← θ_j − mean of Δ_k over the members of j; a cluster without a member keeps its model (Ghosh et al. 2020)."""

    criterion: Literal["loss", "property"] = "loss"

    def __init__(self, algorithm: Clustered, parts: RoundParts) -> None:
        super().__init__(parts)
        self.options = algorithm
        if not group("0", self.state.model):  # a run that is resumed has its K models already
            model = spread_copies(self.state.model, algorithm.clusters, algorithm.spread, self.config.seed)
            self.state = replace(self.state, model=model)

    def update(self, memory: OptimizerState, model: Arrays, replies: list[Reply]) -> tuple[Arrays, OptimizerState]:
        """One server step."""
        return {**model, **self._means(model, replies)}, memory

    def model_for(self, client: str) -> Arrays:
        """θ_j of the client's cluster j."""
        return group(str(self.group_of(client)), self.state.model)

    def group_of(self, client: str) -> int:
        """j; the first cluster for a client that could not be asked."""
        return int(self.state.memory.get("cluster", {}).get(client, 0))

    def groups(self) -> dict[str, int]:
        """Client -> cluster."""
        return {client: int(j) for client, j in sorted(self.state.memory.get("cluster", {}).items())}

    def prepare(self, clients: Mapping[str, EnrolledClient], ask: Ask, *, training: bool) -> None:
        """Assign the clients that train and are due, or those that are measured and were never assigned."""
        due = [client for name, client in sorted(clients.items()) if self._due(name, training)]
        answers = self._assessed(due, ask)
        keys = [str(j) for j in range(self.options.clusters)]
        losses = {name: [answer.losses[key] for key in keys] for name, answer in answers.items()}
        chosen: Arrays = {name: np.array(j) for name, j in assign_clusters(losses, self.options.assign).items()}
        memory = self.state.memory
        known = ("low", "high", "days") if training else ("days",)
        news: OptimizerState = {"cluster": chosen, **{key: _told(key, answers) for key in known}}
        if training:  # what is only measured leaves no trace in later rounds, nor in a run that is resumed
            news["since"] = dict.fromkeys(chosen, np.array(self.state.round + 1))
        merged = {key: {**memory.get(key, {}), **new} for key, new in news.items()}
        self.state = replace(self.state, memory={**memory, **{key: value for key, value in merged.items() if value}})

    def _due(self, client: str, training: bool) -> bool:
        memory = self.state.memory
        if not training:  # to be measured is not worth any of a privacy budget
            return not self.cost and client not in memory.get("cluster", {})
        since = memory.get("since", {}).get(client)
        return since is None or self.state.round + 1 - int(since) >= self.options.recluster_every

    def _assessed(self, clients: list[EnrolledClient], ask: Ask) -> dict[str, AssignReply]:
        """What every client that answered usably says of the K models."""
        number, made = self.state.round + 1, {}
        for client in clients:
            if client.enrolment not in made:
                asked = AssignRequest(number, client.enrolment, self.state.model, self.criterion, self.cost, self._sums)
                made[client.enrolment] = encode(asked)
        answers: dict[str, AssignReply] = {}
        for message in ask([self._message(c, ASSIGN, made[c.enrolment]) for c in clients]) if clients else []:
            name = self.enrolment.roster.name(message.metadata.src_node_id)
            try:
                answers[name] = check_assignment(
                    decode(AssignReply, content_of(message)), number, self.options.clusters
                )
            except WireError as error:
                log.warning("%s: not assigned to a cluster anew: %s", name, error)
        return dict(sorted(answers.items()))

    @property
    def _sums(self) -> Arrays:
        """What models start from, where they are judged by their loss; obedience is judged without."""
        return self.state.statics if self.criterion == "loss" else {}

    def _means(self, model: Arrays, replies: list[Reply]) -> Arrays:
        """The moved layers of every cluster that has a reply."""
        moved: Arrays = {}
        for j in range(self.options.clusters):
            members = [reply for reply in replies if self.group_of(reply.client) == j]
            if members:
                step = mean_update(members)
                own = group(str(j), model)
                moved |= add_prefix(str(j), sub({name: own[name] for name in step}, step))
        return moved


def _told(key: str, answers: Mapping[str, AssignReply]) -> Arrays:
    return {name: answer.property[key] for name, answer in answers.items() if key in answer.property}


METHOD = ServerMethod(clustered.METHOD, ClusteredStrategy)
