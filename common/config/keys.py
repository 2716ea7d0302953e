"""Keys of options that all methods, or all planners, share, former keys, and removed ones.

Before 0.2, each method and each planner had keys of its own for them, such as `algorithm.fedavg.lr`. The run's configuration on
the wire keeps these keys: a message holds the options of one method, and clients of earlier releases read them.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from common.errors import ConfigError
from common.methods.base import LocalTraining
from common.methods.planners import PLANNERS, PlannerOptions
from common.methods.registry import FIRST_METHOD, METHODS
from common.options import Scalar, kebab
from common.text import hint

LOG = logging.getLogger(__name__)

TRAINING, PLANNER = "training", "planner"

SHARED: dict[str, tuple[str, ...]] = {
    TRAINING: tuple(kebab(name) for name in LocalTraining.model_fields),
    PLANNER: tuple(kebab(name) for name in PlannerOptions.model_fields),
}
"""Section -> its options."""


def current_key(key: str) -> str:
    """Return `training.lr` for the former key `algorithm.<method>.lr`; any other key as it is."""
    match key.split("."):
        case ["algorithm", name, option]:
            section = PLANNER if name in PLANNERS else TRAINING if name in METHODS else ""
            return f"{section}.{kebab(option)}" if kebab(option) in SHARED.get(section, ()) else key
    return key


def owners(flat: Mapping[str, Scalar]) -> dict[str, str]:
    """Return section -> method or planner of the run that has its options; no `planner` without a planner."""
    method = str(flat.get("method", FIRST_METHOD))
    if method not in PLANNERS:
        return {TRAINING: method}
    inner = flat.get("planner.inner", flat.get(f"algorithm.{method}.inner", PLANNERS[method].options().inner))
    return {TRAINING: str(inner), PLANNER: method}


def respell(flat: Mapping[str, Scalar], *, note: bool = False) -> dict[str, Scalar]:
    """Return the options of a run by the keys of this release; those of other methods remain.

    Args:
        flat: Dotted key -> value.
        note: True to log each former key, once a process.

    Raises:
        ConfigError: A key is set by both its names to different values.
    """
    run_owners, current = owners(flat), dict[str, Scalar]()
    for given, value in flat.items():
        new = current_key(given)
        if new != given and given.split(".")[1] != run_owners.get(new.partition(".")[0]):
            new = given
        if new != given and flat.get(new, value) != value:
            raise ConfigError(f"{given} is now {new}, and both are set; remove {given}")
        if new != given and note:
            note_renamed(given, new)
        current[new] = value
    return current


@cache
def note_renamed(key: str, new: str) -> None:
    """Log that a key has a new name, once a process."""
    LOG.warning("%s is now %s; the old name works until 0.3", key, new)


def overlay(*sources: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return the options of all sources; later ones win, also where one names an option by its former key."""
    merged: dict[str, Scalar] = {}
    for source in sources:
        named = {current_key(key) for key in source}
        merged = {key: value for key, value in merged.items() if current_key(key) not in named} | dict(source)
    return merged


def assign_shared(flat: Mapping[str, Scalar]) -> tuple[dict[str, Scalar], list[str]]:
    """Move shared options to the run's method and planner; return all options, and faults of unknown ones.

    Raises:
        ConfigError: A planner's option is set, and the run has no planner.
    """
    run_owners, placed, faults = owners(flat), dict[str, Scalar](), []
    for key, value in flat.items():
        section, _, option = key.partition(".")
        if section not in SHARED or not option:
            placed[key] = value
        elif kebab(option) not in SHARED[section]:
            faults.append(
                f"unknown option '{key}'{hint(key, [f'{section}.{name}' for name in SHARED[section]], cutoff=0.5)}"
            )
        elif section not in run_owners:
            planners = ", ".join(PLANNERS)
            raise ConfigError(
                f"option planner.* has no effect with method {run_owners[TRAINING]}; remove it or set method to one of"
                f" {planners}"
            )
        else:
            placed[f"algorithm.{run_owners[section]}.{kebab(option)}"] = value
    return placed, faults


@dataclass(frozen=True)
class Removed:
    """Config key, or some values of a config key, without meaning since 0.2.

    Args:
        remedy: What to do instead, as an imperative.
        refused: Values that are refused; None refuses all but the ignored ones.
        ignored: Values that are dropped. Runs and servers of earlier releases name the former default.
    """

    remedy: str
    refused: tuple[Scalar, ...] | None = None
    ignored: tuple[Scalar, ...] = ()


SUMS_FIRST = "sums of statistics come first with method=ridge"

REMOVED = {
    "algorithm.fedstl.cluster-data": Removed("remove it: no client sends windows of training data", ignored=("none",)),
    "algorithm.fedstl.sample-windows": Removed("remove it: no client sends windows of training data", ignored=(64,)),
    "federation.encoding": Removed("use federation.encoding=int8", refused=("top-k",)),
    "federation.error-feedback": Removed("use federation.encoding=int8", ignored=("auto", False)),
    "federation.keep": Removed("use federation.encoding=int8", ignored=(0.1,)),
    "federation.poll-cap": Removed("remove it: clients wait on a stream and ask no questions", ignored=(0.0, 0)),
    "privacy.count-share": Removed(f"remove it: {SUMS_FIRST}", ignored=(0.5,)),
    "tasks.markets.count-delta": Removed("use privacy.delta with method=ridge", ignored=(1e-5,)),
    "tasks.markets.count-epsilon": Removed("use privacy.epsilon with method=ridge", ignored=(0.0,)),
    "tasks.markets.count-offset": Removed(f"remove it: {SUMS_FIRST}", ignored=("auto", False)),
    "tasks.ratings.count-offset": Removed(f"remove it: {SUMS_FIRST}", ignored=(False,)),
    "tasks.rules.count-delta": Removed("use privacy.delta with method=ridge", ignored=(1e-5,)),
    "tasks.rules.count-epsilon": Removed("use privacy.epsilon with method=ridge", ignored=(0.0,)),
    "tasks.rules.count-offset": Removed(f"remove it: {SUMS_FIRST}", ignored=("auto", False)),
    "tasks.sessions.count-offset": Removed(f"remove it: {SUMS_FIRST}", ignored=("auto", False)),
    "tasks.traffic.count-offset": Removed(f"remove it: {SUMS_FIRST}", ignored=("auto", False)),
}
"""Dotted key -> what to do without it."""


def update_keys(flat: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return the options without removed ones that have no effect.

    Raises:
        ConfigError: A key or a value was removed.
    """
    for given, value in flat.items():
        key = given.replace("_", "-")
        removed = REMOVED.get(key)
        if removed and not is_ignored(key, value) and (removed.refused is None or value in removed.refused):
            named = key if removed.refused is None else f"{key}={value}"
            raise ConfigError(f"{named} was removed in 0.2; {removed.remedy}")
    return {key: value for key, value in flat.items() if not is_ignored(key.replace("_", "-"), value)}


def is_ignored(key: str, value: Scalar) -> bool:
    """Return True for a removed key whose value has no effect."""
    return key in REMOVED and value in REMOVED[key].ignored
