"""Experiment: one row of a study's tables, as the flat configuration of its runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from common.config.keys import current_key
from common.options import Scalar

Settings = Mapping[str, Scalar]
"""Flat configuration: dotted key -> value."""

TUNING_SEED = 100
"""Seed on whose validation split points are chosen; no study reports it."""


@dataclass(frozen=True)
class Experiment:
    """One row of a study's tables.

    Args:
        key: Short name, unique within its protocol.
        title: Name in the tables.
        settings: Configuration that all its runs share, without seed, vocabulary and run id.
        grid: Points to tune over, each a part of the configuration; a single point is not tuned.
        seeds: Number of reported seeds, 0 and up.
        protocol: Part of the study in which it is compared.
        tuned_as: Key of the row whose point it takes; empty if it is tuned itself.
        central: True if one client holds all data.
    """

    key: str
    title: str
    settings: Settings = field(default_factory=dict)
    grid: tuple[Settings, ...] = ({},)
    seeds: int = 5
    protocol: str = "default"
    tuned_as: str = ""
    central: bool = False


HELPED_EPSILONS = (8.0, 2.0)
"""ε of the closed form in one sum of two helpers, in every study."""


def with_helpers(one: Experiment, epsilon: float) -> Experiment:
    """Return a row in sums of two helpers with client-level noise."""
    privacy: Settings = {"privacy.unit": "client", "privacy.epsilon": epsilon, "privacy.trust": "helpers"}
    title = f"closed form, one sum of two helpers at ε = {epsilon:g}"
    return replace(one, key=f"{one.key}-{epsilon:g}", title=title, settings={**one.settings, **privacy})


def method_options(method: str, options: Settings) -> dict[str, Scalar]:
    """Return options of a method under their dotted keys; those that all methods have are in `[training]`."""
    return {current_key(f"algorithm.{method}.{key}"): value for key, value in options.items()}


def task_options(task: str, options: Settings) -> dict[str, Scalar]:
    """Return options of a task under their dotted keys."""
    return {f"tasks.{task}.{key}": value for key, value in options.items()}


def label(point: Settings) -> str:
    """Return a point as text, such as `lr 3, clip-norm 0.2`."""
    return ", ".join(f"{key.rpartition('.')[2]} {value:g}" for key, value in point.items()) or "not tuned"
