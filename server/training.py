"""All rounds of a run: training, rounds that lost their clients, and the early end."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from flwr.app import ArrayRecord, ConfigRecord
from flwr.serverapp import Grid

from common.errors import BudgetSpentError, QuorumError
from common.wire.codec import to_record
from server.enrolment import MAX_REWAIT_SECONDS
from server.events import ENDED_EARLY
from server.journal import Journal
from server.strategies.planned import PlannedStrategy
from server.strategies.round import RoundStrategy

Strategy = RoundStrategy | PlannedStrategy

FIRST_PAUSE_SECONDS, PAUSE_GROWTH, MAX_PAUSE_SECONDS = 0.05, 1.5, 2.0  # between two requests of a round


@dataclass
class Patience:
    """Time in which one round may be asked again, from its first failure.

    Args:
        seconds: The time.
        clock: Monotonic seconds.
        sleep: Function that waits a number of seconds.
    """

    seconds: float
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    round: int = -1
    end: float = 0.0
    pause: float = 0.0

    def allows(self, number: int) -> bool:
        """Return True if the round of this number may be asked again."""
        if number != self.round:
            self.round, self.end, self.pause = number, self.clock() + self.seconds, FIRST_PAUSE_SECONDS
        return self.clock() <= self.end

    def wait(self) -> None:
        """Wait longer before each repetition, since a node may answer at once that it cannot train."""
        self.sleep(self.pause)
        self.pause = min(self.pause * PAUSE_GROWTH, MAX_PAUSE_SECONDS)


def train(strategy: Strategy, grid: Grid, journal: Journal) -> str:
    """Train all rounds, or as many as the clients can afford; return the reason of an early end.

    Without remaining rounds the run ended in its last evaluation; only that evaluation is done. A round that lost its
    clients is asked again once enough are back, for as long as a running run waits for clients. One with unusable replies
    is asked again without their senders, if the others are enough.

    Raises:
        QuorumError: Too few clients answered or came back.
    """
    config = strategy.config
    patience = Patience(min(config.federation.wait, MAX_REWAIT_SECONDS))
    if journal.unwritten and strategy.state.round < config.rounds:
        _evaluate(strategy, grid)
    while (rounds := config.rounds - strategy.state.round) > 0:
        try:
            arrays = to_record(strategy.state.model)
            strategy.start(grid, arrays, num_rounds=rounds, timeout=config.federation.deadline)
        except BudgetSpentError as spent:
            strategy.conclude(grid)
            return f"{ENDED_EARLY}: {spent}"
        except QuorumError:
            can_return = journal.can_return(config.federation.min_replies) and patience.allows(strategy.state.round)
            if not (can_return or strategy.can_exclude(grid)):
                raise
            journal.repeat_round()
            patience.wait()
        else:
            return ""
    strategy.conclude(grid)
    return ""


def _evaluate(strategy: Strategy, grid: Grid) -> None:
    """Evaluate the model of a round whose evaluation a kill has interrupted."""
    messages = strategy.configure_evaluate(strategy.state.round, ArrayRecord(), ConfigRecord(), grid)
    strategy.aggregate_evaluate(strategy.state.round, grid.send_and_receive(messages))
