"""Reward and context of a planned round (algorithms.md §4.1, §4.2), and detection of a plateau."""

import math
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from common.arrays import Array, Arrays, Floats
from common.config.run import RunConfig
from common.errors import RunError
from common.tasks.registry import TASKS
from common.text import count
from server.aggregation.metrics import Evaluation, limit_weights, pool, trim
from server.aggregation.replies import Rows
from server.clients.roster import EnrolledClient
from server.planning.state import pack_values, unpack_values

METRICS_REMEDY = (
    'set share-metrics = "always" in some policies, or use a planner without metrics'
    " (algorithm.bgtplanner.reward=norm, method uniform, stop=never)"
)
"""Remedy for missing rewards; under noise, clients send metrics only if their policy opts in."""


def check_metrics_shared(config: RunConfig, clients: Collection[EnrolledClient]) -> None:
    """Check that a client shares the metric of the planner's reward.

    Raises:
        RunError: The planner needs metrics, and no client shares them.
    """
    sharing = sum(client.shares_metrics for client in clients)
    is_summed = config.privacy.unit == "none" and config.privacy.resolved_trust == "helpers"
    if not config.planner.by_rewards or sharing >= (config.secure_sums.min_sum if is_summed else 1):
        return
    if sharing:
        raise RunError(
            f"{config.method} needs metrics, which {count(sharing, 'client')} share;"
            f" a secure sum has at least {config.secure_sums.min_sum} (no budget was charged)"
        )
    metric = TASKS[config.task].objective.metric
    raise RunError(
        f"{config.method} needs the metric '{metric}', which none of the {len(clients)} enrolled clients shares"
        f" (no budget was charged); {METRICS_REMEDY}"
    )


def improvement(before: float, after: float, higher_is_better: bool = False) -> float:
    """Return r_t = RMSE_{t−1} − RMSE_t, or the negative for metrics of which higher is better.

    The same rule on the norm of the noisy mean update is a reward without privacy cost, but a weak one. The authors' code
    repeats the last value of a non-finite metric, which hides diverged training.

    Args:
        before: Metric of the previous round.
        after: Metric of this round.
        higher_is_better: True if higher values of the metric are better.

    Raises:
        RunError: A value is non-finite.
    """
    if not (math.isfinite(before) and math.isfinite(after)):
        raise RunError(
            f"training diverged (the planner's metric changed from {before} to {after}); lower lr, or use a planner without"
            " rewards"
        )
    return after - before if higher_is_better else before - after


def has_plateaued(rewards: Floats, patience: int, min_gain: float) -> bool:
    """Return True if the best of the last `patience` rounds gains at most `min_gain` over earlier ones.

    Args:
        rewards: Rewards of the rounds, (t,); their cumulative sum, from 0, is the quality of the model.
        patience: Number of last rounds.
        min_gain: Minimum gain, in the unit of rewards.
    """
    if len(rewards) < patience:
        return False
    quality = np.concatenate([[0.0], np.cumsum(rewards)])
    return bool(quality[-patience:].max() <= quality[:-patience].max() + min_gain)


MAX_DENSE_SIDE = 64
"""Maximum side of a matrix that is decomposed by a dense solver."""


def largest_table(update: Arrays) -> Array:
    """Return the largest changed array of an update as a matrix, such as item embeddings.

    Private layers never change; the update of a closed form is empty.
    """
    if not update:
        return np.zeros((1, 1))
    changed = [array for array in update.values() if array.any()] or list(update.values())
    largest = max(changed, key=lambda array: array.size)
    return largest.reshape(len(largest), -1) if largest.ndim else largest.reshape(1, 1)


def item_matrix(ids: Sequence[NDArray[np.integer]], items: int) -> Floats:
    """Return M_t, N × I: 1 if client k sent the id of item i this round, pseudo-items included.

    Args:
        ids: Item ids that each client sent.
        items: Number I of items.
    """
    matrix = np.zeros((len(ids), items))
    for row, columns in zip(matrix, ids, strict=True):
        row[columns] = 1.0
    return matrix


def singular_values(matrix: NDArray[np.floating], d: int) -> Floats:
    """Return x_t, the largest d singular values, descending, (d,); missing ones are 0.

    They do not depend on the order of rows, that is of clients. Iterative solvers return no order, so the values are sorted.

    Args:
        matrix: Aggregated noisy update of item embeddings, or M_t of the paper; two-dimensional.
        d: Number of singular values.

    Raises:
        RunError: The matrix has non-finite numbers.
    """
    if not np.isfinite(matrix).all():
        raise RunError("the update of this round is non-finite; lower lr or the noise")
    values = np.sort(_top_singular_values(np.asarray(matrix, np.float64), d))[::-1][:d]
    return np.concatenate([values, np.zeros(d - len(values))])


def _top_singular_values(matrix: Floats, d: int) -> Floats:
    side = min(matrix.shape)
    if side == 0 or d == 0 or not matrix.any():
        return np.zeros(0)
    if side <= max(MAX_DENSE_SIDE, 2 * d):
        return np.asarray(np.linalg.svd(matrix, compute_uv=False), np.float64)
    from scipy.sparse.linalg import svds  # 10 MB that runs without a planner do not need

    start = np.random.default_rng(0).normal(size=side)  # ARPACK's default start is random
    return np.asarray(svds(matrix, k=d, v0=start, return_singular_vectors=False), np.float64)


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
    task = TASKS[config.task]
    metric = task.objective.metric
    now, earlier = limit_weights(evaluation.values_of(metric)), unpack_values(reference)
    if not now and planner.requires_rewards:
        raise RunError(
            f"{planner.name} needs the metric '{metric}', which no client reported this round; {METRICS_REMEDY}"
        )
    remaining = trim({name: now[name][0] - earlier[name] for name in now if name in earlier})
    both = {name: now[name] for name in now if name in remaining}
    then = {name: (earlier[name], weight) for name, (_, weight) in both.items()}
    reward = improvement(pool(metric, then), pool(metric, both), task.higher_is_better) if both else 0.0
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
