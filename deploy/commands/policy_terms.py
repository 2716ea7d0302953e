"""The owner's terms as `join` is told them: of the policy file and of the command line, whichever is stricter."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tomli_w

from client.data.sources import is_demo
from client.policy import Policy, read_policy
from client.settings import ClientSettings
from common.errors import ConfigError
from common.methods.registry import METHODS
from common.options import meant
from common.privacy.claims import UNBOUNDED
from deploy.files import write_file

FILE = "policy.toml"
"""In a client's state: the terms of both, made anew at every start."""


def keep_terms(settings: ClientSettings, methods: Sequence[str], epsilon: float | None, delta: float | None) -> Path:
    """Write the terms where the client reads them, for its owner only; returns the file.

    Raises:
        ConfigError: As `narrowed`, or the policy file is wrong.
    """
    terms = narrowed(read_policy(settings.policy, is_generated=is_demo(settings.data)), methods, epsilon, delta)
    path = settings.state_dir / settings.name / FILE
    write_file(path, tomli_w.dumps(terms.model_dump(by_alias=True)).encode(), mode=0o600, overwrite=True)
    return path


def narrowed(
    policy: Policy, methods: Sequence[str] = (), epsilon: float | None = None, delta: float | None = None
) -> Policy:
    """A policy that allows what it did and the command line does too.

    Args:
        policy: The owner's file, or what holds without one.
        methods: All that the client takes part in; empty says nothing.
        epsilon: ε of everything that ever leaves the data; with it nothing leaves without noise.
        delta: δ that goes with it.

    Raises:
        ConfigError: An option is mistyped, says nothing by itself, or leaves no method.
    """
    told: dict[str, Any] = {"methods": _in_both(policy, methods)} if methods else {}
    if epsilon is not None:
        if not 0 < epsilon < UNBOUNDED:
            raise ConfigError(f"--epsilon {epsilon:g} is no limit: say a positive number below {UNBOUNDED:g}")
        told |= {"max_epsilon": min(epsilon, policy.max_epsilon), "require_noise": True}
    if delta is not None:
        if epsilon is None:
            raise ConfigError("--delta goes with --epsilon: say that too, or leave --delta out")
        if not 0 < delta < 1:
            raise ConfigError(f"--delta {delta:g} is no probability: say a number between 0 and 1, such as 1e-5")
        told["delta"] = min(delta, policy.delta) if "delta" in policy.model_fields_set else delta
    return policy.model_copy(update=told)


def _in_both(policy: Policy, methods: Sequence[str]) -> tuple[str, ...]:
    for method in methods:
        if method not in METHODS:
            raise ConfigError(f"--method: unknown '{method}'{meant(method, METHODS)}")
    if both := tuple(method for method in policy.methods if method in methods):
        return both
    allowed = f"allows {', '.join(policy.methods)} only" if policy.methods else "allows no method"
    raise ConfigError(f"the policy file {allowed}: leave --method {methods[0]} out, or change the file")
