"""Tasks on a client; `build_learner` is the one place that chooses."""

from typing import assert_never

from client.data.markets.market import Dataset as Markets
from client.data.parts import Part
from client.data.ratings.raters import Dataset as Ratings
from client.data.rules.homes import Dataset as Homes
from client.data.sessions.visitors import Dataset as Visits
from client.data.traffic.series import Dataset as Sensors
from client.tasks.learner import TaskLearner as TaskLearner
from client.tasks.markets import MarketsLearner
from client.tasks.ratings import RatingsLearner
from client.tasks.rules import RulesLearner
from client.tasks.sessions import SessionsLearner
from client.tasks.traffic import TrafficLearner
from common.config import RunConfig


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
