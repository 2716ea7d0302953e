"""Public surface for plug-ins at the server; the names of the last line are of release 0.1 and go in 0.3."""

from common.contribution import Contribution
from server.aggregation.replies import Reply
from server.round.deprecated import Collected, Replies, RoundParts, RoundStrategy
from server.round.method import Assignment, Groups, Method, RoundContext, ServerMethod

OptimizerState = Groups

__all__ = ["Assignment", "Contribution", "Groups", "Method", "Reply", "RoundContext", "ServerMethod"]
__all__ += ["Collected", "OptimizerState", "Replies", "RoundParts", "RoundStrategy"]
