"""Contract of `--device`: a cohort trains on another device with the same bits, and no step copies a tensor."""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest

from client.data.read import partition, read_all
from client.privacy.dp_sgd import DpSgdNoise
from client.state import MemoryStore
from client.tasks.learner import Learner
from client.training.local_round import train_together
from client.training.participant import Participant
from common.arrays import add_prefix
from common.config.parse import parse
from common.config.run import RunConfig
from common.models import parameters
from common.options import Scalar
from common.wire.messages import TrainReply, TrainRequest
from tests.support import market_learners, markets
from tests.support.build import learner_of
from tests.support.elsewhere import ELSEWHERE, Elsewhere
from tests.support.markets import DEMO
from tests.support.road_learners import DAYS
from tests.support.sensors import MEASURES, road_config, sensor
from tests.support.toys import CATALOGUE, configured, toy_dataset

Case = tuple[RunConfig, Callable[[], Sequence[Learner]]]
"""Configuration, and the making of learners, which takes time."""

FORMULA: dict[str, Scalar] = {
    "tasks__traffic__property": "formula",
    "tasks__traffic__formula": "F[0,1] (volume >= 900) & (volume <= 700 -> F[1,2] (volume <= 300))",
}


def homes(method: str, **options: Scalar) -> Case:
    config = configured(method, **options)
    return config, lambda: [learner_of(config, CATALOGUE, [home]) for home in toy_dataset(2).units]


def demo(task: str, method: str, **options: Scalar) -> Case:
    config = parse({"task": task, "method": method, **options})
    parts = cache(lambda: partition(read_all(task, "demo:0-2"), 0))
    return config, lambda: [learner_of(config, part.vocabulary, part.units) for part in parts()[:2]]


def shops(config: RunConfig) -> Case:
    return config, lambda: [learner_of(config, DEMO.vocabulary, [unit]) for unit in DEMO.units[:2]]


def roads(method: str, **options: Scalar) -> Case:
    config = road_config(method, **options)
    return config, lambda: [learner_of(config, MEASURES, [sensor(k, DAYS)]) for k in range(2)]


CASES: dict[str, Case] = {
    "rules": homes("fedrule"),
    "rules, paper": homes("fedrule", model="paper", optimizer="adam"),
    "rules, models beside": homes("ditto"),
    "rules, noise on records": homes("fedavg", **{"privacy.unit": "record", "privacy.epsilon": 8.0}),
    "sessions": demo("sessions", "fedga"),
    "sessions, paper": demo("sessions", "fedga", model="paper"),
    "sessions, target attention": demo(
        "sessions", "fedavg", model="paper", **{"tasks.sessions.network": "tagnn", "training.optimizer": "adam"}
    ),
    "ratings": demo("ratings", "fedavg"),
    "ratings, paper": demo("ratings", "fedavg", model="paper"),
    "markets": shops(market_learners.build_config()),
    "markets, siamese": shops(market_learners.build_config("paper", network="siamese")),
    "markets, paper": shops(markets.configured(rows=16)),
    "traffic": roads("fedstl"),
    "traffic, paper": roads("fedstl", model="paper"),
    "traffic, transformer": roads("fedstl", model="paper", tasks__traffic__network="transformer"),
    "traffic, formula": roads("fedavg", **FORMULA),
}
COPIES = ("markets, paper", "traffic, formula")
"""Cases whose steps copy: Algorithm 2 draws its items step by step, and a teacher asks which forecasts violate."""


class Trained:
    """Clients after rounds of 1, 2 and 3 steps, with their replies, states, and the copies of each round."""

    def __init__(self, config: RunConfig, learners: Sequence[Learner], device: str, elsewhere: Elsewhere) -> None:
        self.stores, self.replies, self.copies = [MemoryStore() for _ in learners], list[TrainReply](), list[int]()
        model, is_private = parameters(learners[0].module), config.privacy.unit == "record"
        noise = DpSgdNoise(1.0, 1.0, 0.5, lambda: np.random.default_rng(5)) if is_private else None
        for number in (1, 2, 3):
            request, before = TrainRequest(number, "toy:0", model, {}, number - 1), elsewhere.moves
            cohort = [
                Participant(f"c{k}", "toy", 0, one, store, request, number, noise, device=device)
                for k, (one, store) in enumerate(zip(learners, self.stores, strict=True))
            ]
            outcomes = train_together(config.method_options, cohort, with_all=True).replies()
            self.replies += [outcome for outcome in outcomes if isinstance(outcome, TrainReply)]
            assert len(self.replies) == number * len(learners), outcomes
            self.copies.append(elsewhere.moves - before)

    def arrays(self) -> list[tuple[str, bytes]]:
        """Return the numbers of replies and states by their names."""
        sent = [{**reply.update, **add_prefix("gradient", reply.gradient)} for reply in self.replies]
        stored = [store.load("toy").groups.items() for store in self.stores]
        states = [{f"{group}/{n}": t.numpy() for group, named in one for n, t in named.items()} for one in stored]
        return [(n, a.tobytes()) for arrays in (*sent, *states) for n, a in sorted(arrays.items())]


@pytest.mark.parametrize("name", CASES)
def test_another_device_gives_the_same_bits(name: str) -> None:
    config, make = CASES[name]
    learners, elsewhere = make(), Elsewhere()
    here = Trained(config, learners, "cpu", elsewhere)
    with elsewhere:
        there = Trained(config, learners, str(ELSEWHERE), elsewhere)
    assert [reply.loss for reply in there.replies] == [reply.loss for reply in here.replies]
    assert there.arrays() == here.arrays()
    assert there.copies[0] > 0
    assert name in COPIES or there.copies[1] == there.copies[2], "a step copies"
