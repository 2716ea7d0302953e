"""Config keys of earlier releases: removed ones are refused, renamed ones are read for one release."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from common.errors import ConfigError
from common.options import Scalar

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Removed:
    """Config key, or some values of a config key, without meaning in this release.

    Args:
        release: Release that removed it.
        remedy: What to do instead, as an imperative.
        refused: Values that are refused; None refuses all but the ignored ones.
        ignored: Values that are dropped. Runs and servers of earlier releases name the former default.
    """

    release: str
    remedy: str
    refused: tuple[Scalar, ...] | None = None
    ignored: tuple[Scalar, ...] = ()


REMOVED = {
    "algorithm.fedstl.cluster-data": Removed(
        "0.2", "remove it: no client sends windows of training data", ignored=("none",)
    ),
    "algorithm.fedstl.sample-windows": Removed(
        "0.2", "remove it: no client sends windows of training data", ignored=(64,)
    ),
    "federation.encoding": Removed("0.2", "use federation.encoding=int8", refused=("top-k",)),
    "federation.error-feedback": Removed("0.2", "use federation.encoding=int8", ignored=("auto", False)),
    "federation.keep": Removed("0.2", "use federation.encoding=int8", ignored=(0.1,)),
}
"""Dotted key -> what to do without it."""

RENAMED: dict[str, str] = {}
"""Former dotted key -> its key in this release; `common.config.keys` adds those of methods."""

LAST_RELEASE = "0.3"
"""Release that refuses the former keys."""


def update_keys(flat: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return the options by the keys of this release; a renamed key is reported once a process.

    Sources of options are merged after this, so that a former key overrides as its new one does.

    Raises:
        ConfigError: A key or a value was removed, or a key is set by both its names to different values.
    """
    current: dict[str, Scalar] = {}
    for given, value in flat.items():
        key = given.replace("_", "-")
        if is_ignored(key, value):
            continue
        _require_present(key, value)
        new = RENAMED.get(key, given)
        if new != given:
            if flat.get(new, value) != value:
                raise ConfigError(f"{key} is now {new}, and both are set; remove {key}")
            note_renamed(key, new)
        current[new] = value
    return current


def is_ignored(key: str, value: Scalar) -> bool:
    """Return True for a removed key whose value has no effect."""
    return key in REMOVED and value in REMOVED[key].ignored


def _require_present(key: str, value: Scalar) -> None:
    removed = REMOVED.get(key)
    if removed and (removed.refused is None or value in removed.refused):
        named = key if removed.refused is None else f"{key}={value}"
        raise ConfigError(f"{named} was removed in {removed.release}; {removed.remedy}")


@cache
def note_renamed(key: str, new: str) -> None:
    """Log that a key has a new name, once a process."""
    LOG.warning("%s is now %s; the old name works until %s", key, new, LAST_RELEASE)
