"""Public surface for plug-ins at the server."""

from server.aggregation.optimizers import OptimizerState
from server.strategies.replies import Reply, mean_update
from server.strategies.round import RoundStrategy
from server.strategies.spec import RoundParts, ServerMethod

__all__ = ["OptimizerState", "Reply", "RoundParts", "RoundStrategy", "ServerMethod", "mean_update"]
