"""Order of policies: the limits of one that allow more than another."""

import math

from client.policy import Policy

SUBSETS = ("methods", "tasks", "units", "trust")
"""Lists of what is allowed."""

LOOSE_FLAGS = ("allow_shared_sample", "helpers_on_first_use", "serve_as_helper")
"""Flags that allow more if they are true."""

STRICT_FLAGS = ("require_noise", "strict_property")
"""Flags that allow more if they are false."""

UPPER, LOWER = ("max_epsilon", "delta", "max_epsilon_per_round"), ("min_sum", "min_helpers")
"""Upper and lower limits."""

COUNTS = ("never", "summed", "clear")
"""Values of `allow-counts`, the strictest first."""


def find_looser(policy: Policy, default: Policy) -> list[str]:
    """Return the keys of a policy that allow more than those of another."""
    own, other = policy.model_dump(), default.model_dump()
    looser = {key: not {*own[key]} <= {*other[key]} for key in SUBSETS}
    looser |= {key: own[key] and not other[key] for key in LOOSE_FLAGS}
    looser |= {key: own[key] > other[key] for key in UPPER} | {key: own[key] < other[key] for key in LOWER}
    looser |= {key: other[key] and not own[key] for key in STRICT_FLAGS}
    looser["max_local_steps"] = (own["max_local_steps"] or math.inf) > (other["max_local_steps"] or math.inf)
    looser["allow_counts"] = COUNTS.index(own["allow_counts"]) > COUNTS.index(other["allow_counts"])
    looser["share_metrics"] = own["share_metrics"] not in (other["share_metrics"], "never")
    looser["share_metrics"] &= other["share_metrics"] != "always"
    looser["helpers"] = not own["helpers"].items() <= other["helpers"].items()
    return [key.replace("_", "-") for key in own if looser[key]]
