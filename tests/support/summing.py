"""Clients with homes and helpers under a server that forms secure sums of their replies."""

import base64
from functools import partial
from typing import Any

import numpy as np

from client.owner.policy import Policy
from client.privacy.simulation import in_memory
from client.session import Session
from client.state import MemoryStore
from common.arrays import Arrays, Ints
from common.config.parse import to_json
from common.config.run import RunConfig
from common.models import parameters
from common.node_names import simulated_node_key
from common.secure.layout import SumLayout
from common.secure.norms import commitment
from common.secure.quantisation import integer_clip, noise_scale
from common.secure.terms import NOISED_BITS, SumTerms
from common.wire.messages import EnrolRequest, MembersRequest, SumReply, TrainReply, TrainRequest
from tests.support.asked import learner
from tests.support.build import task_model
from tests.support.desks import CLIENTS, Helpers, open_sum, total
from tests.support.helpers import cards_of
from tests.support.toys import CATALOGUE

POLICY = Policy(allow_counts="clear", min_sum=2, helpers_on_first_use=True)


CHECK = base64.b64encode(bytes(32)).decode()
"""Key of the checks of helpers' sums."""


class Upload:
    """Masked reply of a client, as desks and sums of tests take it."""

    def __init__(self, client: str, reply: SumReply) -> None:
        self.client, self.masked, self.sealed = client, reply.masked["sum"], reply.sealed
        proof = reply.masked["proof"]
        is_noised = proof.dtype == np.uint8
        self.commitment = commitment(self.masked, proof.tobytes(), len(self.sealed)) if is_noised else ""


class Summing:
    """Clients, helpers, and the server's part in one sum.

    Args:
        config: Configuration of the run.
        number: Number of clients.
        policy: Policy of every client.
    """

    def __init__(self, config: RunConfig, number: int = 3, policy: Policy = POLICY) -> None:
        self.config, self.helpers = config, Helpers(2)
        self.model = parameters(task_model(config, CATALOGUE))
        invitation = EnrolRequest("toy", to_json(config), CATALOGUE.to_json(), self.helpers.roster.to_json())
        self.sessions = {f"client-{k}": self._session(f"client-{k}", k, policy) for k in range(number)}
        self.enrolled = [session.enrol(invitation) for session in self.sessions.values()]
        for session in self.sessions.values():
            session.members(MembersRequest(self.enrolled[0].enrolment, 0, cards_of(*CLIENTS), CHECK))

    @property
    def first(self) -> Session:
        return self.sessions["client-0"]

    @property
    def spent(self) -> float:
        return self.first.releaser.budget.ledger(self.config.privacy).spent()

    def terms(self, template: Arrays, rho: float = 0.0, **changed: Any) -> SumTerms:
        layout = SumLayout.of(template)
        noised = {
            "bits": NOISED_BITS,
            "bound": integer_clip(layout.size),
            "clip": self.config.privacy.clip,
            "noise": noise_scale(rho, integer_clip(layout.size), "signed") if rho else 0,
        }
        exact = {"bits": 64, "bound": 0, "clip": 0.0, "noise": 0}
        about = {"size": layout.size, "rho": rho, "layout": layout.blocks, "most": 64, **(noised if rho else exact)}
        return self.helpers.terms(**{**about, **changed})

    def request(self, terms: SumTerms | str, number: int = 1, **changed: Any) -> TrainRequest:
        """Return a training request with these terms."""
        text, rho = (terms, 0.0) if isinstance(terms, str) else (terms.to_json(), terms.rho)
        fields = {"model": self.model, "cost": rho, "terms": text, **changed}
        return TrainRequest(number, self.enrolled[0].enrolment, **fields)

    def train(self, request: TrainRequest) -> dict[str, TrainReply]:
        return {name: session.train(request) for name, session in self.sessions.items()}

    def open(self, terms: SumTerms, replies: dict[str, TrainReply]) -> Ints:
        """Return the sum of the clients' integers and of the noise."""
        uploads: Any = [Upload(name, reply) for name, reply in sorted(replies.items())]
        assert not any(reply.bad for reply in self.helpers.prepare(terms, uploads))
        return total(uploads, [open_sum(desk, terms, uploads) for desk in self.helpers.desks])

    def _session(self, name: str, seed: int, policy: Policy) -> Session:
        key, releaser = partial(simulated_node_key, name), in_memory(policy, lambda: np.random.default_rng(seed))
        return Session(name, learner, MemoryStore(), releaser, node_key=key)
