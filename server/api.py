"""Public surface for plug-ins at the server."""

from server.aggregation.optimizers import OptimizerState
from server.aggregation.results import Collected, Replies, Reply
from server.round.method import RoundParts, ServerMethod
from server.round.round import RoundStrategy

__all__ = ["Collected", "OptimizerState", "Replies", "Reply", "RoundParts", "RoundStrategy", "ServerMethod"]
