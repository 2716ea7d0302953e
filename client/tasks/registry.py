"""Tasks on a client; `build_learner` is the one place that chooses."""

from typing import assert_never

from client.data.read import Part
from client.tasks.learner import TaskLearner as TaskLearner
from client.tasks.markets.data.markets import Markets
from client.tasks.markets.learner import MarketsLearner
from client.tasks.ratings.data.raters import Ratings
from client.tasks.ratings.learner import RatingsLearner
from client.tasks.rules.data.homes import Homes
from client.tasks.rules.learner import RulesLearner
from client.tasks.sessions.data.visitors import Visits
from client.tasks.sessions.learner import SessionsLearner
from client.tasks.traffic.data.series import Sensors
from client.tasks.traffic.learner import TrafficLearner
from common.config.run import RunConfig


def build_learner(config: RunConfig, part: Part) -> TaskLearner:
    """A client's data made ready for a run."""
    match part:
        case Homes():
            return RulesLearner(config, part.catalogue, part.homes)
        case Visits():
            return SessionsLearner(config, part.items, part.visitors)
        case Sensors():
            return TrafficLearner(config, part.measures, part.series)
        case Ratings():
            return RatingsLearner(config, part.products, part.raters)
        case Markets():
            return MarketsLearner(config, part.goods, part.markets)
        case _:
            assert_never(part)
