"""FedSTL as its authors run it: clusters are chosen and polished on the server, on windows that clients hand over in clear.

For fidelity only (algorithms.md §3.6): the default needs no reading to leave a client. Private heads never come here, so each
cluster's model has a head of its own on the server, which the pooled windows train.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from common.arrays import Array, Arrays, add_prefix, group
from common.errors import WireError
from common.methods.fedstl import FedSTL
from common.models import tensors
from common.tasks.traffic.model import build_forecaster
from common.tasks.traffic.property_loss import violation
from common.tasks.traffic.shared_windows import PREFIX, Sample
from common.tasks.traffic.task import TASK
from common.wire.codec import decode, encode
from common.wire.messages import ASSIGN, AssignReply, AssignRequest
from server.aggregation.clusters import pool_ranges
from server.roster import EnrolledClient
from server.strategies.base import Ask
from server.strategies.fedstl import FedSTLStrategy
from server.strategies.replies import Reply, check_assignment, content_of
from server.strategies.spec import RoundParts

log = logging.getLogger("fedloom.server")

Bounded = tuple[Sample, Arrays]
"""Windows and the property that they are to obey."""


class SharedWindowsStrategy(FedSTLStrategy):
    """Algorithms 1 and 2 on the pooled D_i^s."""

    def __init__(self, algorithm: FedSTL, parts: RoundParts) -> None:
        super().__init__(algorithm, parts)
        self._handed: dict[str, Bounded] = {}
        self._traffic = parts.config.options_of(TASK)

    def polish(self, model: Arrays, replies: list[Reply]) -> Arrays:
        """κ steps on F_j over the windows of the members that replied."""
        moved: Arrays = {}
        for j in range(self.options.clusters):
            members = [
                self._handed[r.client] for r in replies if self.group_of(r.client) == j and r.client in self._handed
            ]
            if members and self.kappa:
                moved |= add_prefix(str(j), self._trained(group(str(j), model), members))
        return {**model, **moved}

    def _due(self, client: str, training: bool) -> bool:
        """The windows are not kept from round to round, so whoever trains is asked."""
        return training or super()._due(client, training)

    def _assessed(self, clients: list[EnrolledClient], ask: Ask) -> dict[str, AssignReply]:
        """What the clients hand over, and what the K models make of it."""
        number, answers = self.state.round + 1, dict[str, AssignReply]()
        asked = [
            self._message(c, ASSIGN, encode(AssignRequest(number, c.enrolment, {}, "sample", self.cost)))
            for c in clients
        ]
        self._handed = {}
        for message in ask(asked) if asked else []:
            name = self.enrolment.roster.name(message.metadata.src_node_id)
            try:
                reply = decode(AssignReply, content_of(message))
                answers[name] = self._judged(name, reply, number)
            except WireError as error:
                log.warning("%s: not assigned to a cluster anew: %s", name, error)
        return dict(sorted(answers.items()))

    def _judged(self, name: str, reply: AssignReply, number: int) -> AssignReply:
        """The reply with L_p(φ_i, S_j(D_i^s)) of every j.

        Raises:
            WireError: It hands over no sample, or one that does not fit the run.
        """
        sample = Sample.of(reply.property, self._traffic)
        parameters = {key: a for key, a in reply.property.items() if not key.startswith(PREFIX)}
        keys = [str(j) for j in range(self.options.clusters)]
        unjudged = replace(reply, losses=dict.fromkeys(keys, 0.0), property=parameters)
        one = sample, check_assignment(unjudged, number, self.options.clusters).property
        self._require_fit(sample, parameters["low"])
        with torch.no_grad():
            losses = {key: float(self._parts(tensors(group(key, self.state.model)), [one])[1]) for key in keys}
        judged = check_assignment(replace(unjudged, losses=losses), number, self.options.clusters)
        self._handed[name] = one
        return judged

    def _require_fit(self, sample: Sample, low: Array) -> None:
        """Check that a sample is of as many variables as the run, and its property too.

        Raises:
            WireError: It is not.
        """
        variables = sample.base.shape[-1]
        with torch.device("meta"):  # shapes alone: nobody knows yet how many variables are claimed
            module = build_forecaster(variables, self._traffic, paper=self.config.model == "paper")
        shapes = {name: tuple(p.shape) for name, p in module.named_parameters()}
        own = {name: a.shape for name, a in group("0", self.state.model).items()}
        if shapes != own or low.shape[1:] != (variables,):
            raise WireError(f"its sample, or its property, is not of the run's variables but of {variables}")

    def _trained(self, model: Arrays, members: Sequence[Bounded]) -> Arrays:
        """θ_j after κ steps over all windows at once, under φ_j, the weakest of the members' properties."""
        phi = pool_ranges([told["low"] for _, told in members], [told["high"] for _, told in members])
        fitting = [(sample, phi) for sample, told in members if told["low"].shape == phi["low"].shape]
        params = {name: p.requires_grad_() for name, p in tensors(model).items()}
        rule = torch.optim.Adam if self.options.optimizer == "adam" else torch.optim.SGD
        optimizer = rule(params.values(), lr=self.options.lr)
        for _ in range(self.kappa):
            optimizer.zero_grad()
            error, distance = self._parts(params, fitting)
            torch.autograd.backward(error + self._traffic.property_weight * distance)
            if self.options.clip_norm:
                nn.utils.clip_grad_norm_(params.values(), self.options.clip_norm)
            optimizer.step()
        return {name: p.detach().numpy() for name, p in params.items()}

    def _parts(self, params: dict[str, Tensor], windows: Sequence[Bounded]) -> tuple[Tensor, Tensor]:
        """MSE and L_p over windows."""
        whole = Sample(*(np.concatenate([getattr(s, name) for s, _ in windows]) for name in vars(windows[0][0])))
        low, high = (_float(np.concatenate([told[end][s.clock] for s, told in windows])) for end in ("low", "high"))
        module = _forecaster(whole.base.shape[-1], self._traffic, self.config.model == "paper")
        forecast = functional_call(module, params, (_float(whole.history),)) + _float(whole.base)
        return (forecast - _float(whole.target)).square().mean(), violation(forecast, low, high, None)


_forecaster = cache(lambda variables, options, paper: build_forecaster(variables, options, paper=paper))


def _float(array: Any) -> Tensor:
    return torch.from_numpy(np.asarray(array, np.float32))
