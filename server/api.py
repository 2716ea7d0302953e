"""Public surface for plug-ins at the server."""

from server.aggregation.collected import Collected, Replies, Reply
from server.aggregation.optimizers import OptimizerState
from server.strategies.round import RoundStrategy
from server.strategies.spec import RoundParts, ServerMethod

__all__ = ["Collected", "OptimizerState", "Replies", "Reply", "RoundParts", "RoundStrategy", "ServerMethod"]
