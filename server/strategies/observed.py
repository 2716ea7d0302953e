"""Reward and context of a planned round."""

from collections.abc import Sequence

import numpy as np

from common.arrays import Array, Arrays
from common.config.run import RunConfig
from common.errors import RunError
from common.tasks.registry import TASKS
from server.aggregation.row_mean import Rows
from server.evaluation import Evaluation, limit_weights, pool, trim
from server.planning.context import item_matrix, largest_table
from server.planning.preconditions import METRICS_REMEDY
from server.planning.reward import improvement
from server.planning.state import pack_values, unpack_values


def is_on_test_data(config: RunConfig, number: int) -> bool:
    """Return True if the round's metrics are of the test split, which planners must not use."""
    held_out = config.task_options.validation_share > 0
    return held_out and number == config.rounds and not config.planner.observes_norm


def compute_reward(config: RunConfig, evaluation: Evaluation, length: float, reference: Arrays) -> tuple[float, Arrays]:
    """Return r_t and the reference of the next round.

    The reward is over clients that reported this round and an earlier one; otherwise a client that joins or leaves would
    change it. From five such clients on, those of the largest changes do not count.

    Args:
        config: Configuration of the run.
        evaluation: Metrics of the round.
        length: Norm of the aggregated update, divided by the clip norm.
        reference: Reference of this round: metric of each client, or `norm`.

    Raises:
        RunError: The planner needs a metric that no client reported, or training diverged.
    """
    planner = config.planner
    if planner.observes_norm:
        before = reference.get("norm", np.array(length))
        return improvement(float(before), length), {"norm": np.array(length)}
    objective = TASKS[config.task].objective
    now, earlier = limit_weights(evaluation.values_of(objective.metric)), unpack_values(reference)
    if not now and planner.requires_rewards:
        raise RunError(
            f"{planner.name} needs the metric '{objective.metric}', which no client reported this round; {METRICS_REMEDY}"
        )
    kept = trim({name: now[name][0] - earlier[name] for name in now if name in earlier})
    both = {name: now[name] for name in now if name in kept}
    then = {name: (earlier[name], weight) for name, (_, weight) in both.items()}
    metric, higher_is_better = objective.metric, objective.higher_is_better
    reward = improvement(pool(metric, then), pool(metric, both), higher_is_better) if both else 0.0
    return reward, pack_values({**earlier, **{name: value for name, (value, _) in now.items()}})


def build_context(update: Arrays, row_ids: Sequence[Rows]) -> Array:
    """Return the matrix that describes a round: M_t if clients send item ids, else the noisy mean update.

    Args:
        update: Aggregated update.
        row_ids: Row ids in each reply; empty dictionaries if clients send none.
    """
    tables = {name for rows in row_ids for name in rows}
    if not tables:
        return largest_table(update)
    [table] = tables
    return item_matrix([rows[table] for rows in row_ids], len(update[table]))
