"""Strategies with four enrolled clients, and their replies."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from flwr.app import Message, RecordDict

from common.arrays import Arrays, scale, sha256
from common.config.run import RunConfig
from common.wire.codec import encode
from common.wire.messages import EnrolRequest, TrainReply
from server.clients.enrolment import Enrolment
from server.clients.roster import EnrolledClient
from server.round.checks import LossWatch
from server.round.intake import SingleIntake
from server.round.method import RoundContext
from server.round.round import Round
from server.round.state import RunState, Trained
from tests.support.build import round_of
from tests.support.toys import METHODS, configured, instruction

NAMES = ("ann", "bob", "cyd", "dee")

NODES = {name: 10 + k for k, name in enumerate(NAMES)}

MODEL = {"encoder.w": np.array([[1.0, -2.0], [0.5, 3.0]], np.float32), "predictor.b": np.array([0.25], np.float32)}

VARIANTS: dict[str, RunConfig] = {
    **{method: configured(method, local_steps=3) for method in METHODS},
    "fedavg-momentum": configured("fedavg", momentum=0.9, server_lr=0.5),
    "fedavg-weighted": configured("fedavg", weighting="examples"),
    "fedrule-eq3": configured("fedrule", optimizer="sgd", control="eq3"),
    "fedrule-server-adam": configured("fedrule", server_optimizer="adam"),
    "fedga-ramp": configured("fedga", second_moment="ramp", local_steps=3),
    "fedga-quadratic-alone": configured("fedga", second_moment="quadratic", dra=False, local_steps=3),
}

every_strategy = pytest.mark.parametrize("variant", VARIANTS)


class Server:
    """Strategy with enrolled clients, and its reported results."""

    def __init__(self, variant: str, min_replies: int = 1, robust: str = "none") -> None:
        update = {"min_replies": min_replies, "robust": robust}
        federation = VARIANTS[variant].federation.model_copy(update=update)
        self.config = VARIANTS[variant].model_copy(update={"federation": federation})
        self.enrolment = Enrolment(EnrolRequest("toy", "{}", "{}"), 0.0, lambda messages, seconds: [])
        for name, node in NODES.items():
            self.enrolment.roster.enrol(EnrolledClient(name, node, "toy:0", node))
        self.enrolment.roster.select_uninvited(NODES.values())
        self.trained: list[Trained] = []
        self.strategy = self.at(RunState(0, MODEL))

    def at(self, state: RunState) -> Round:
        return round_of(self.config, state, enrolment=self.enrolment, on_trained=self.trained.append)

    @property
    def intake(self) -> SingleIntake:
        assert isinstance(self.strategy.intake, SingleIntake)
        return self.strategy.intake

    def listen(self) -> None:
        """Prepare to take the replies of a round as they arrive."""
        self.intake.open(RoundContext(self.strategy.config, self.strategy.state), [*NODES])

    def change(self, **federation: Any) -> None:
        """Continue with other options of `[federation]`."""
        options = self.config.federation.model_copy(update=federation)
        self.config = self.config.model_copy(update={"federation": options})
        self.strategy = self.at(self.strategy.state)

    def watch(self, losses: LossWatch) -> None:
        """Take steps back by these losses."""
        self.strategy.observer = replace(self.strategy.observer, find_explosion=losses.find_explosion)

    def round(self, *messages: Message) -> RunState:
        self.strategy.aggregate_train(1, list(messages))
        return self.strategy.state


def reply_of(name: str, number: int = 1, **changes: Any) -> TrainReply:
    """Return a reply with random numbers seeded by the client's name."""
    rng = np.random.default_rng(list(name.encode()))
    update: Arrays = {n: rng.normal(size=a.shape).astype(np.float32) for n, a in MODEL.items()}
    gradient = scale(update, 0.5)
    return replace(TrainReply(number, update, gradient, 0.5, NODES[name], 3), **changes)


def message_of(name: str, reply: TrainReply | RecordDict | None = None, number: int = 1) -> Message:
    content = reply if isinstance(reply, RecordDict) else encode(reply or reply_of(name, number))
    return Message(content, reply_to=instruction(NODES[name]))


def good(*names: str, number: int = 1) -> list[Message]:
    return [message_of(name, number=number) for name in names or NAMES]


def fingerprint(state: RunState) -> tuple[str, dict[str, str]]:
    return sha256(state.model), {key: sha256(arrays) for key, arrays in state.memory.items()}
