"""Public surface for plug-ins at the server."""

from server.aggregation.optimizers import OptimizerState
from server.aggregation.results import Collected, Replies, Reply
from server.methods.fedavg import MeanStrategy
from server.planning.planner import Decision, Planner, RunBudget, ServerPlanner, Stop, cost_levels, open_round
from server.planning.registry import Schedule
from server.planning.state import PlannerState, PlayedRounds
from server.round.method import RoundParts, ServerMethod
from server.round.round import RoundStrategy

__all__ = [
    "Collected",
    "Decision",
    "MeanStrategy",
    "OptimizerState",
    "Planner",
    "PlannerState",
    "PlayedRounds",
    "Replies",
    "Reply",
    "RoundParts",
    "RoundStrategy",
    "RunBudget",
    "Schedule",
    "ServerMethod",
    "ServerPlanner",
    "Stop",
    "cost_levels",
    "open_round",
]
