"""What a run may claim of privacy, in words that its clients' ledgers keep."""

from collections.abc import Mapping
from dataclasses import replace

from common.config.run import RunConfig
from common.privacy.accounts import build_account
from common.privacy.claims import HELD_OUT, ITEM_IDS, NEIGHBOURS, SAME_ITEMS, UNCOVERED
from server.events import Privacy

UNPROTECTED = Privacy(
    unit="none",
    mechanism="none: model updates leave clients unclipped and without noise; data stay, what updates reveal is not bounded",
    epsilon_spent_max=None,
    delta=None,
    uncovered=[
        "model updates",
        "training losses",
        "metrics",
        "numbers of records",
        "who takes part and when",
    ],
)
"""What is claimed of a run without differential privacy: nothing."""

SUMMED = "counts that models start from: each client's own, handed to the server in clear (count-offset)"

IN_A_RUN = (
    "vocabulary: the names that clients' data use are taken as public",
    "tuning: that options were chosen by what earlier runs on these data came to",
)
"""Channels of a whole run, beside those of every release."""

ALL, NUMBERS = "all that a client sends", "all numbers that a client sends, beside ids of items in clear"

RELEASES = {
    "gaussian": "Gaussian noise on {what}, as one vector of Euclidean norm at most {clip:g}",
    "laplace": "Laplace noise on {what}, as one vector of absolute sum at most {clip:g}",
    "privunit": "PrivUnitG on the direction of {what}, as one vector",
}
"""Unit `client`, by mechanism."""

COUNTS = (
    "Gaussian noise that each client adds itself: (ε = {epsilon:g}, δ = {delta:g})-private for each of its users, whatever the "
    "server and other clients do"
)
"""Beside updates without noise."""

STEPS = "Gaussian noise on sums of gradients of norm at most {clip:g}, of records drawn with probability {sample:g}"
"""Unit `record`."""


def statement(config: RunConfig, spent: Mapping[str, float], sharing: int) -> Privacy:
    """The run's statement.

    Args:
        config: The run.
        spent: Client -> what it was asked to spend, in the unit of the run's account.
        sharing: Clients whose metrics left them.
    """
    options = config.privacy
    if options.unit == "none":
        task, method = config.task_options, config.method_options
        in_clear = [ITEM_IDS] if task.named_rows else []
        in_clear += [*method.uncovered()]
        in_clear += [SUMMED] if task.count_offset and task.count_privacy.unit == "none" else []
        in_clear += [*task.uncovered()]
        return replace(UNPROTECTED, counts=_of_counts(config), uncovered=[*in_clear, *UNPROTECTED.uncovered])
    account = build_account(options)
    how = STEPS if options.unit == "record" else RELEASES[options.mechanism]
    most = max(spent.values(), default=0.0)
    metrics = [f"metrics: {sharing} clients' owners share theirs in clear"] if sharing else []
    ids = [ITEM_IDS] if config.task_options.named_rows else []
    size = ["size: how many records a client has", HELD_OUT] if options.unit == "record" else []
    return Privacy(
        unit=options.unit,
        mechanism=how.format(what=NUMBERS if ids else ALL, **options.model_dump()),
        epsilon_spent_max=min(account.claim(most, options.delta), options.epsilon) if most else 0.0,
        delta=None if account.name == "pure" else options.delta,
        uncovered=[*ids, *metrics, *size, *UNCOVERED, *IN_A_RUN],
        epsilon=options.epsilon,
        neighbours=SAME_ITEMS if ids else NEIGHBOURS[options.unit],
        account=account.name,
    )


def _of_counts(config: RunConfig) -> str:
    """What is promised of counts that clients give beside their updates."""
    noise = config.task_options.count_privacy
    if noise.unit == "none" or not config.task_options.count_offset:
        return ""
    return COUNTS.format(epsilon=noise.epsilon, delta=noise.delta)
