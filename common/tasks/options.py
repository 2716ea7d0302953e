"""THE list of tasks, and `[tasks.<task>]`: the options of each."""

from typing import Literal, get_args

from common.options import Options
from common.tasks.markets import MarketsOptions
from common.tasks.ratings import RatingsOptions
from common.tasks.rules import RulesOptions
from common.tasks.sessions import SessionsOptions
from common.tasks.traffic import TrafficOptions

Task = Literal["rules", "sessions", "traffic", "ratings", "markets"]
TASKS: tuple[Task, ...] = get_args(Task)

AnyTask = RulesOptions | SessionsOptions | TrafficOptions | RatingsOptions | MarketsOptions


class TaskOptions(Options):
    """Each task's options."""

    rules: RulesOptions = RulesOptions()
    sessions: SessionsOptions = SessionsOptions()
    traffic: TrafficOptions = TrafficOptions()
    ratings: RatingsOptions = RatingsOptions()
    markets: MarketsOptions = MarketsOptions()
