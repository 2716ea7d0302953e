"""`--set a.b=c`: options as a person types them."""

import tomllib

from common.errors import ConfigError
from common.options import Scalar


def read_overrides(assignments: list[str]) -> dict[str, Scalar]:
    """Read `key=value` assignments; a value is a TOML scalar or, failing that, a bare word.

    Raises:
        ConfigError: An assignment without `=`.
    """
    pairs = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--set {assignment}: write it as key=value, for example algorithm.fedrule.lam=1.0")
        try:
            value = tomllib.loads(f"v = {text}")["v"]
        except tomllib.TOMLDecodeError:
            value = text
        pairs[key.strip()] = value
    return pairs
