"""Public surface for plug-ins at the server; the names of the last list are of release 0.1 and go in 0.3."""

from common.contribution import Contribution
from server.aggregation.replies import Reply
from server.methods.fedavg import Mean
from server.planning.planner import Decision, Planner, RunBudget, ServerPlanner, Stop, cost_levels, open_round
from server.planning.registry import Schedule
from server.planning.state import PlannerState, PlayedRounds
from server.round.deprecated import Collected, Replies, RoundParts, RoundStrategy
from server.round.method import Assignment, Groups, Method, RoundContext, ServerMethod

OptimizerState = Groups

__all__ = [
    "Assignment",
    "Contribution",
    "Decision",
    "Groups",
    "Mean",
    "Method",
    "Planner",
    "PlannerState",
    "PlayedRounds",
    "Reply",
    "RoundContext",
    "RunBudget",
    "Schedule",
    "ServerMethod",
    "ServerPlanner",
    "Stop",
    "cost_levels",
    "open_round",
]
__all__ += ["Collected", "OptimizerState", "Replies", "RoundParts", "RoundStrategy"]
