"""Strategy of FedSTL with shared windows: clusters on training windows that clients send in plaintext.

It reproduces the authors' code (algorithms.md §3.6); by default no reading is sent. Private heads stay on the clients, so each
cluster's model has a separate head on the server, which the pooled windows train.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import torch
from flwr.app import Message
from torch import Tensor, nn
from torch.func import functional_call

from common.arrays import Array, Arrays, add_prefix, group
from common.errors import WireError
from common.methods.fedstl import FedSTL
from common.models import tensors
from common.tasks.traffic.model import build_forecaster, violation
from common.tasks.traffic.shared_windows import PREFIX, Sample
from common.tasks.traffic.task import TASK
from common.wire.codec import encode
from common.wire.messages import ASSIGN, AssignReply, AssignRequest
from server.aggregation.clusters import pool_ranges
from server.clients.roster import EnrolledClient
from server.methods.fedstl import FedSTLStrategy
from server.round.method import RoundParts

Bounded = tuple[Sample, Arrays]
"""Windows of a client, and its property."""


class SharedWindowsStrategy(FedSTLStrategy):
    """FedSTL with Algorithms 1 and 2 on the pooled D_i^s."""

    def __init__(self, options: FedSTL, parts: RoundParts) -> None:
        super().__init__(options, parts)
        self._windows: dict[str, Bounded] = {}
        self._traffic = parts.config.options_of(TASK)

    def refine(self, model: Arrays, clients: list[str]) -> Arrays:
        """Return the model after κ steps on F_j over the windows of each cluster's participants."""
        updated: Arrays = {}
        for j in range(self.options.clusters):
            windows = [self._windows[n] for n in clients if self.group_of(n) == j and n in self._windows]
            if windows and self.kappa:
                updated |= add_prefix(str(j), self._train(group(str(j), model), windows))
        return {**model, **updated}

    def _is_due(self, client: str, training: bool) -> bool:
        """Return True for all training clients, because windows are not stored between rounds."""
        return training or super()._is_due(client, training)

    def _score_requests(self, clients: list[EnrolledClient]) -> list[Message]:
        self._windows = {}
        requests = ((c, AssignRequest(self.state.round + 1, c.enrolment, {}, "sample", self.cost)) for c in clients)
        return [self._message(client, ASSIGN, encode(request)) for client, request in requests]

    def _accept_scores(self, client: str, reply: AssignReply) -> AssignReply:
        """Store a client's windows, and return its reply with L_p(φ_i, S_j(D_i^s)) for every j.

        Raises:
            WireError: The reply has no windows, or windows that do not match the run.
        """
        sample = Sample.of(reply.property, self._traffic)
        parameters = {key: a for key, a in reply.property.items() if not key.startswith(PREFIX)}
        keys = [str(j) for j in range(self.options.clusters)]
        unscored = replace(reply, losses=dict.fromkeys(keys, 0.0), property=parameters)
        bounded = sample, super()._accept_scores(client, unscored).property
        self._check_variables(sample, parameters["low"])
        with torch.no_grad():
            losses = {key: float(self._parts(tensors(group(key, self.state.model)), [bounded])[1]) for key in keys}
        scored = super()._accept_scores(client, replace(unscored, losses=losses))
        self._windows[client] = bounded
        return scored

    def _check_variables(self, sample: Sample, low: Array) -> None:
        """Check that windows and property have the number of variables of the run.

        Raises:
            WireError: The number differs.
        """
        variables = sample.base.shape[-1]
        with torch.device("meta"):  # shapes alone, because a hostile reply can have any number of variables
            module = build_forecaster(variables, self._traffic, paper=self.config.model == "paper")
        shapes = {name: tuple(p.shape) for name, p in module.named_parameters()}
        expected = {name: a.shape for name, a in group("0", self.state.model).items()}
        if shapes != expected or low.shape[1:] != (variables,):
            raise WireError(f"windows or property of {variables} variables do not match the run's vocabulary")

    def _train(self, model: Arrays, windows: Sequence[Bounded]) -> Arrays:
        """Return θ_j after κ steps on all windows, under φ_j, the weakest property of the clients."""
        phi = pool_ranges([bounds["low"] for _, bounds in windows], [bounds["high"] for _, bounds in windows])
        fitting = [(sample, phi) for sample, bounds in windows if bounds["low"].shape == phi["low"].shape]
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
        """Return MSE and L_p over windows."""
        whole = Sample(*(np.concatenate([getattr(s, name) for s, _ in windows]) for name in vars(windows[0][0])))
        low, high = (_float(np.concatenate([phi[end][s.clock] for s, phi in windows])) for end in ("low", "high"))
        module = _forecaster(whole.base.shape[-1], self._traffic, self.config.model == "paper")
        forecast = functional_call(module, params, (_float(whole.history),)) + _float(whole.base)
        return (forecast - _float(whole.target)).square().mean(), violation(forecast, low, high, None)


_forecaster = cache(lambda variables, options, paper: build_forecaster(variables, options, paper=paper))


def _float(array: Any) -> Tensor:
    return torch.from_numpy(np.asarray(array, np.float32))
