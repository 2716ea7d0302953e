"""Public surface for plug-ins at the server."""

from server.aggregation.optimizers import OptimizerState
from server.aggregation.round_results import Collected, Replies, Reply
from server.strategies.round import RoundStrategy
from server.strategies.spec import RoundParts, ServerMethod

__all__ = ["Collected", "OptimizerState", "Replies", "Reply", "RoundParts", "RoundStrategy", "ServerMethod"]
