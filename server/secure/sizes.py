"""Sizes of the vectors of a run's secure sums, checked before its clients are invited."""

from math import prod

from common.config.run import RunConfig
from common.models import build_model, parameters
from common.secure.terms import MOST_NUMBERS
from common.tasks.registry import TASKS
from common.tasks.vocabulary import Vocabulary

MOST_COUNTS = 1_000_000
"""Maximum size of a vector of counts."""


def find_oversize(config: RunConfig, vocabulary: Vocabulary) -> str:
    """Return the reason why a run's vectors are too large for secure sums; empty if they are not."""
    spec, capabilities = TASKS[config.task], config.capabilities
    model = parameters(build_model(spec, config.task_run(spec, vocabulary)))
    private = spec.private(model, capabilities)
    shared = sum(a.size for name, a in model.items() if name not in private)
    numbers = shared * (1 + capabilities.needs_gradient + capabilities.needs_magnitude) + 1  # with the weight
    if numbers > MOST_NUMBERS:
        return f"an update of {numbers:,} numbers exceeds the {MOST_NUMBERS:,} of a secure sum"
    if config.task_options.count_offset and spec.counts and spec.counts.template:
        template = spec.counts.template(config.task_options, vocabulary)
        counts = sum(prod(a.shape) for a in template.values())
        if counts > MOST_COUNTS:
            return f"counts of {counts:,} numbers exceed the {MOST_COUNTS:,} of a secure sum (count-offset)"
    return ""
