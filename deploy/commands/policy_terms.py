"""Limits of `fedloom join`: the stricter of policy file and command line."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tomli_w

from client.data.sources import is_demo
from client.policy import Policy, read_policy
from client.settings import ClientSettings
from common.errors import ConfigError
from common.methods.registry import METHODS
from common.privacy.claims import UNBOUNDED
from common.text import meant
from deploy.files import write_file

FILE = "policy.toml"
"""File in a client's state with both limits, written at every start."""


def store_limits(settings: ClientSettings, methods: Sequence[str], epsilon: float | None, delta: float | None) -> Path:
    """Write the limits where the client reads them, for its owner only, and return the file.

    Raises:
        ConfigError: As `narrowed`, or the policy file is wrong.
    """
    policy = narrowed(read_policy(settings.policy, is_generated=is_demo(settings.data)), methods, epsilon, delta)
    path = settings.state_dir / settings.name / FILE
    write_file(path, tomli_w.dumps(policy.model_dump(by_alias=True)).encode(), mode=0o600, overwrite=True)
    return path


def narrowed(
    policy: Policy, methods: Sequence[str] = (), epsilon: float | None = None, delta: float | None = None
) -> Policy:
    """Return the policy that allows what both it and the command line allow.

    Args:
        policy: The owner's file, or the defaults.
        methods: Methods in which the client takes part; empty for those of the policy.
        epsilon: Maximum ε over all runs; runs without noise are then refused.
        delta: δ of `epsilon`.

    Raises:
        ConfigError: An option is mistyped, has no effect by itself, or leaves no method.
    """
    limits: dict[str, Any] = {"methods": _allowed_by_both(policy, methods)} if methods else {}
    if epsilon is not None:
        if not 0 < epsilon < UNBOUNDED:
            raise ConfigError(f"--epsilon {epsilon:g} is out of range; give a positive number below {UNBOUNDED:g}")
        limits |= {"max_epsilon": min(epsilon, policy.max_epsilon), "require_noise": True}
    if delta is not None:
        if epsilon is None:
            raise ConfigError("--delta needs --epsilon; give both, or remove --delta")
        if not 0 < delta < 1:
            raise ConfigError(f"--delta {delta:g} is out of range; give a probability between 0 and 1, such as 1e-5")
        limits["delta"] = min(delta, policy.delta) if "delta" in policy.model_fields_set else delta
    return policy.model_copy(update=limits)


def _allowed_by_both(policy: Policy, methods: Sequence[str]) -> tuple[str, ...]:
    for method in methods:
        if method not in METHODS:
            raise ConfigError(f"--method: unknown '{method}'{meant(method, METHODS)}")
    if both := tuple(method for method in policy.methods if method in methods):
        return both
    allowed = f"allows {', '.join(policy.methods)} only" if policy.methods else "allows no method"
    raise ConfigError(f"the policy file {allowed}; remove --method {methods[0]}, or change the file")
