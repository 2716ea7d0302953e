"""Client under audit: its local training returns planted content, all else is the code that releases.

Reservation, chain of transforms, mechanism, ledger, replay cache and client state are those of every client. The ledgers are
in memory, so that no owner's ledger is touched.
"""

from collections.abc import Callable

import numpy as np

from client.owner.policy import Policy
from client.privacy.simulation import in_memory
from client.secure.upload import SumPart
from client.state import MemoryStore
from client.tasks.registry import build_learner
from client.tasks.rules.data.generator import demo_homes
from client.tasks.rules.data.homes import Homes
from client.trainers.registry import build_trainer
from client.training.participant import Participant
from common.arrays import Floats
from common.config.parse import parse
from common.privacy.mechanisms import build_account
from common.tasks.rules.vocabulary import demo_catalogue
from common.wire.messages import TrainReply, TrainRequest
from studies.audit.cases import DELTA, Case
from studies.harness.experiment import Settings

CLIP, SIZE = 1.0, 16
"""Clip norm C, and number of planted numbers."""

BEYOND = 3.0
"""Norm of the planted content in units of C, so that a missing clip shows."""

RUNS_A_LEDGER = 50
"""Runs charged to one ledger; a longer one takes longer to sum."""

ASKED = 2
"""Requests of each round; a repeated one must get the same bytes."""

NAME = "w"
"""Name of the planted array."""


class AuditedClient:
    """Client whose updates are planted.

    Args:
        case: Way, ε and rounds of its runs.
        generator: Factory of the random generator for privacy noise.
    """

    def __init__(self, case: Case, generator: Callable[[], np.random.Generator]) -> None:
        privacy: Settings = {
            "privacy.unit": "client",
            "privacy.epsilon": case.epsilon,
            "privacy.delta": DELTA,
            "privacy.clip": CLIP,
            "privacy.mechanism": "gaussian" if case.way == "sum" else case.way,
            "privacy.trust": "helpers" if case.way == "sum" else "local",
        }
        self.config = parse({"method": "fedavg", "task": "rules", "training.local-steps": 1, **privacy})
        self.cost = build_account(self.config.privacy).total(case.epsilon, DELTA) / case.rounds
        self.charged, self.runs = 0.0, 0
        self._learner = build_learner(self.config, Homes(demo_homes(0, 1, 0), demo_catalogue()))
        self._generator = generator
        self._releaser = in_memory(Policy(), generator)

    @property
    def run(self) -> str:
        """Name of the current run."""
        return f"run-{self.runs}"

    def start_run(self) -> None:
        """Start another run, and another ledger after some runs."""
        self.runs += 1
        if self.runs % RUNS_A_LEDGER == 0:
            self._releaser = in_memory(Policy(), self._generator)

    def end_run(self) -> None:
        """Add what the ledger charged for the run."""
        self.charged += self._releaser.budget.ledger(self.config.privacy).spent_in(self.run)

    def answers(self, number: int, content: Floats) -> list[float]:
        """Return the first number of the reply of a round, in units of C, and of a repeated request."""
        return [float(self.release(number, content).update[NAME][0]) / CLIP for _ in range(ASKED)]

    def release(self, number: int, content: Floats, part: SumPart | None = None) -> TrainReply:
        """Return the reply of a round whose local training yields the content."""
        request = TrainRequest(number, f"{self.run}:0", {}, cost=self.cost)
        reservation = self._releaser.budget.reserve(self.config, request)
        participant = Participant(
            "audited", self.run, 0, self._learner, MemoryStore(), request, 1, reservation=reservation, part=part
        )

        def train() -> TrainReply:
            return TrainReply(number, {NAME: content}, {}, loss=0.0, examples=1, steps=1)

        return self._releaser.release_update(self.config, build_trainer(self.config.method_options), participant, train)


def planted(side: float) -> Floats:
    """Return content beyond the clip norm, along the first coordinate, on one side."""
    content = np.zeros(SIZE)
    content[0] = side * BEYOND * CLIP
    return content
