"""Ridge regression in closed form; the client side is `client/trainers/ridge.py`.

The mathematics is that of the task's closed form, such as EASE for rules. A round is one sum; what it gives is sent to the
clients as an untrained input of the model.
"""

from common.arrays import Arrays
from common.contribution import UPDATE, Contribution
from common.methods import ridge
from common.methods.ridge import Ridge
from common.tasks.closed_form import drop_rare, widen
from common.tasks.registry import closed_form_of
from server.round.method import Groups, Method, RoundContext, ServerMethod
from server.round.state import PARENT_SUMS, SUMS


class RidgeStep(Method):
    """One sum a round: statistics in, solution out."""

    def __init__(self, options: Ridge) -> None:
        self.strength, self.min_count = options.strength, options.min_count

    def template(self, at: RoundContext, model: Arrays) -> Arrays:
        """Return zeros of the form of a client's next statistics."""
        template = closed_form_of(at.config.task).template(at.state.statics)
        return widen(template) if self.min_count else template

    def update(self, at: RoundContext, state: Groups, model: Arrays, total: Contribution) -> tuple[Arrays, Groups]:
        """Return the model as it is, and as state the sums with which another run can continue."""
        named = closed_form_of(at.config.task).name_sums(at.state.statics, self._sums(at, total))
        return model, {**state, SUMS: {**state.get(SUMS, {}), **named}}

    def statics(self, at: RoundContext, total: Contribution) -> Arrays:
        """Return what follows from this sum and the earlier ones, without rows of too few clients."""
        return closed_form_of(at.config.task).solve(at.state.statics, self._sums(at, total), self.strength)

    def _sums(self, at: RoundContext, total: Contribution) -> Arrays:
        """Return the sums of this round without rows of too few clients.

        Sums of the run from which this one started are added.
        """
        sums, earlier = total.sums[UPDATE], at.state.memory.get(PARENT_SUMS, {})
        sums = drop_rare(sums, self.min_count) if self.min_count else sums
        return closed_form_of(at.config.task).add_named(at.state.statics, sums, earlier) if earlier else sums


METHOD = ServerMethod(ridge.METHOD, RidgeStep)
