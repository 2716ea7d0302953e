"""Markets learners of the demo data for tests."""

from client.data.read import read_all
from client.tasks.markets.data.markets import Markets
from client.tasks.markets.learner import MarketsLearner
from common.arrays import Arrays
from common.config.parse import parse
from common.config.run import RunConfig
from common.models import parameters
from common.options import Scalar
from common.wire.messages import TrainRequest
from tests.support.build import learner_of

DEMO = read_all("markets", "demo:3-6")


def build_config(model: str = "default", **options: Scalar) -> RunConfig:
    markets = {f"tasks.markets.{key.replace('_', '-')}": value for key, value in options.items()}
    small = {"tasks.markets.width": 32, "tasks.markets.embedding": 8, "tasks.markets.batch": 64}
    return parse({"method": "fedavg", "task": "markets", "model": model, **small, **markets})


def learner(model: str = "default", part: Markets = DEMO, **options: Scalar) -> MarketsLearner:
    return learner_of(build_config(model, **options), part.vocabulary, part.units)


def request(of: MarketsLearner, statics: Arrays | None = None) -> TrainRequest:
    return TrainRequest(1, "toy:0", parameters(of.module), statics=statics or {})


def one_and_rest(**options: Scalar) -> tuple[MarketsLearner, MarketsLearner]:
    """Return a learner of the first market and a learner of all others."""
    first, rest = (
        learner_of(build_config(**options), DEMO.vocabulary, part) for part in (DEMO.units[:1], DEMO.units[1:])
    )
    return first, rest
