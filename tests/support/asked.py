"""Client with homes under a server that sends arbitrary requests."""

import numpy as np

from client.data.dataset import Dataset
from client.owner.policy import Policy
from client.privacy.ledger.ledger import Ledger
from client.privacy.release import Releaser
from client.privacy.simulation import in_memory
from client.session import Session
from client.state import MemoryStore
from client.tasks.learner import Learner
from client.tasks.registry import build_learner
from common.config.parse import parse, to_json
from common.config.run import RunConfig
from common.models import parameters
from common.options import Scalar
from common.tasks.vocabulary import Vocabulary
from common.wire.messages import LOCAL, EnrolRequest, TrainReply, TrainRequest
from tests.support.build import task_model
from tests.support.toys import CATALOGUE, toy_homes


def configured(method: str = "fedavg", **privacy: Scalar) -> RunConfig:
    """Return a configuration; names without a section are options of `[privacy]`."""
    named = {"unit": "client", **privacy}
    options = {name if "." in name else f"privacy.{name.replace('_', '-')}": value for name, value in named.items()}
    return parse({"method": method, "task": "rules", "run-id": "toy", **options})


def learner(config: RunConfig, vocabulary: Vocabulary) -> Learner:
    return build_learner(config, Dataset(toy_homes(3), vocabulary))


class Asked:
    """Client under a server that sends arbitrary requests."""

    def __init__(
        self,
        config: RunConfig,
        policy: Policy | None = None,
        seed: int = 0,
        part: str = "",
        ledger: Ledger | None = None,
    ) -> None:
        draws = iter(range(10**9))

        def generator() -> np.random.Generator:
            return np.random.default_rng([seed, next(draws)])

        self.releaser: Releaser = in_memory(policy or Policy(), generator)
        if ledger is not None:
            self.releaser = Releaser(policy or Policy(), lambda unit, account: ledger, generator, part)
        self.session = Session("ann", learner, MemoryStore(), self.releaser)
        self.model = parameters(task_model(config, CATALOGUE))
        self.config = config
        self.enrolled = self.session.enrol(EnrolRequest("toy", to_json(config), CATALOGUE.to_json()))

    def train(self, number: int, cost: float, clip: float = 1.0, phase: str = LOCAL) -> TrainReply:
        request = TrainRequest(number, self.enrolled.enrolment, self.model, phase=phase, cost=cost, clip=clip)
        return self.session.train(request)

    @property
    def spent(self) -> float:
        return self.releaser.budget.ledger(self.config.privacy).spent()
