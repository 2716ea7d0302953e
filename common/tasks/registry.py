"""THE list of tasks, and `[tasks.<task>]`: the options of each."""

from typing import Literal, get_args

from common.options import Options
from common.tasks.markets.options import MarketsOptions
from common.tasks.ratings.options import RatingsOptions
from common.tasks.rules.options import RulesOptions
from common.tasks.sessions.options import SessionsOptions
from common.tasks.traffic.options import TrafficOptions

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
