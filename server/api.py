"""Public surface for plug-ins at the server; the last list has names of release 0.1, until 0.3."""

from common.contribution import Contribution
from server.aggregation.replies import Reply
from server.methods.fedavg import Mean
from server.planning.planner import Decision, Planner, RunBudget, ServerPlanner, Stop, cost_levels, open_round
from server.planning.registry import Schedule
from server.planning.state import PlannerState, PlayedRounds
from server.round.method import Assignment, Groups, Method, RoundContext, ServerMethod
from server.round.strategy import Collected, Replies, RoundParts, RoundStrategy

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
