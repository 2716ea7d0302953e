"""Reader of the command-line option `--set KEY=VALUE`."""

import tomllib

from common.config.retired import update_keys
from common.errors import ConfigError
from common.options import Scalar


def read_overrides(assignments: list[str]) -> dict[str, Scalar]:
    """Return the keys and values of `key=value` assignments; a value that is not TOML stays text.

    Raises:
        ConfigError: An assignment has no `=` or no key, or an option was removed.
    """
    pairs: dict[str, Scalar] = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals or not key.strip():
            raise ConfigError(
                f"--set {assignment} is not an assignment; write key=value, for example algorithm.fedrule.lam=1.0"
            )
        try:
            value = tomllib.loads(f"v = {text}")["v"]
        except tomllib.TOMLDecodeError:
            value = text
        pairs[key.strip()] = value
    return update_keys(pairs)
