"""Reward and context of a planned round: the planner's signal, and the numbers that describe the round."""

from collections.abc import Sequence

import numpy as np

from common.arrays import Array, Arrays
from common.config.run import RunConfig
from common.errors import RunError
from common.tasks.registry import TASKS
from server.aggregation.row_mean import Rows
from server.evaluation import Evaluation, pool
from server.planning.context import named_items, widest
from server.planning.preconditions import SHARE
from server.planning.reward import improvement
from server.planning.state import recalled, remembered


def is_on_test_data(config: RunConfig, number: int) -> bool:
    """Return True if that round's metrics are of the test split, from which nothing is planned."""
    held_out = config.task_options.validation_share > 0
    return held_out and number == config.rounds and not config.planner.observes_norm


def reward_of(config: RunConfig, evaluation: Evaluation, length: float, seen: Arrays) -> tuple[float, Arrays]:
    """Return r_t over the clients that reported this round and an earlier one, and the reference of the next round.

    Over different clients, a client that joins or leaves would look like a gain or a loss.

    Args:
        config: Configuration of the run.
        evaluation: Metrics of the round.
        length: Norm of the aggregated update, in clips.
        seen: Reference of this round.

    Raises:
        RunError: The planner needs metrics that no client reported, or training diverges.
    """
    planner = config.planner
    if planner.observes_norm:
        before = seen.get("norm", np.array(length))
        return improvement(float(before), length), {"norm": np.array(length)}
    objective = TASKS[config.task].objective
    now, earlier = evaluation.values_of(objective.metric), recalled(seen)
    if not now and planner.requires_rewards:
        raise RunError(f"{planner.name} goes by '{objective.metric}', which no client reported this round; {SHARE}")
    both = {name: now[name] for name in now if name in earlier}
    then = {name: (earlier[name], weight) for name, (_, weight) in both.items()}
    metric, rises = objective.metric, objective.higher_is_better
    reward = improvement(pool(metric, then), pool(metric, both), rises) if both else 0.0
    return reward, remembered({**earlier, **{name: value for name, (value, _) in now.items()}})


def context_of(update: Arrays, named: Sequence[Rows]) -> Array:
    """Return the matrix that describes a round: M_t where clients name items, else the aggregated noisy update.

    Args:
        update: Aggregated update.
        named: Row ids that each reply named; empty dictionaries where clients name none.
    """
    tables = {name for rows in named for name in rows}
    if not tables:
        return widest(update)
    [table] = tables
    return named_items([rows[table] for rows in named], len(update[table]))
