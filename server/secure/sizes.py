"""Sizes of the vectors of a run's secure sums, checked before its clients are invited."""

from math import prod, sqrt

from common.config.run import RunConfig
from common.config.secure_sums import count_cost, find_count_obstacle
from common.errors import ConfigError, RefusedError
from common.secure.quantise import integer_clip, noise_scale
from common.secure.terms import MOST_NUMBERS
from common.tasks.registry import TASKS
from common.tasks.vocabulary import Vocabulary

MOST_COUNTS = 1_000_000
"""Maximum size of a vector of counts."""


def find_oversize(config: RunConfig, vocabulary: Vocabulary) -> str:
    """Return the reason why a run's vectors are too large for secure sums; empty if they are not."""
    from common.models import build_model, parameters  # PyTorch, which a resumed run does not need

    spec, capabilities = TASKS[config.task], config.capabilities
    model = parameters(build_model(spec, config.task_run(spec, vocabulary)))
    private = spec.private(model, capabilities)
    shared = sum(a.size for name, a in model.items() if name not in private)
    clusters = capabilities.clusters
    vectors = clusters or 1 + capabilities.needs_gradient + capabilities.needs_magnitude
    numbers = shared * vectors + (2 * clusters or 1)  # with weights, and the choice of a cluster
    if numbers > MOST_NUMBERS:
        parts = f" for {clusters} clusters" if clusters else ""
        return f"an update of {numbers:,} numbers{parts} exceeds the {MOST_NUMBERS:,} of a secure sum"
    if config.task_options.count_offset is True and (counts := _size_of_counts(config, vocabulary)) > MOST_COUNTS:
        return f"counts of {counts:,} numbers exceed the {MOST_COUNTS:,} of a secure sum (count-offset)"
    return ""


def check_counts(config: RunConfig) -> None:
    """Check that a run without helpers needs no noise of them on its counts.

    Raises:
        ConfigError: It does.
    """
    options = config.task_options
    if config.privacy.resolved_trust != "helpers" and options.count_offset and options.count_privacy.unit == "client":
        raise ConfigError(
            "count-epsilon is noise of helpers, and this run has none; start helpers, or remove count-offset"
        )


def resolve_counts(vocabulary: Vocabulary, config: RunConfig, clients: int) -> RunConfig:
    """Return the configuration of a run, without counts where `auto` leaves them out.

    Args:
        vocabulary: Vocabulary of the task.
        config: Configuration with the resolved trust.
        clients: Number of expected clients.
    """
    options = config.task_options
    if options.count_offset != "auto" or _carries_counts(config, vocabulary, clients):
        return config
    return config.model_copy(update={"task_options": options.model_copy(update={"count_offset": False})})


def _carries_counts(config: RunConfig, vocabulary: Vocabulary, clients: int) -> bool:
    """Return True if a run has secure sums of counts, whose noise is small enough."""
    statistics, size = TASKS[config.task].counts, _size_of_counts(config, vocabulary)
    is_summed = config.privacy.resolved_trust == "helpers" and not find_count_obstacle(config)
    if statistics is None or not is_summed or size > MOST_COUNTS:
        return False
    if not statistics.used(config.task_options, config.model):
        return False
    rho, bound = count_cost(config), integer_clip(size)
    try:
        noise = noise_scale(rho, bound, statistics.sign) * sqrt(config.secure_sums.helpers) if rho else 0.0
    except RefusedError:
        return False
    return clients * bound >= statistics.least_ratio * noise


def _size_of_counts(config: RunConfig, vocabulary: Vocabulary) -> int:
    statistics = TASKS[config.task].counts
    if statistics is None or statistics.template is None:
        return 0
    return sum(prod(a.shape) for a in statistics.template(config.task_options, vocabulary).values())
