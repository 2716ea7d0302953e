"""Policy of the data owner, read from a TOML file; the client refuses requests beyond it."""

import math
import tomllib
from pathlib import Path
from typing import Any, Self

from pydantic import Field, ValidationError, ValidationInfo, field_validator

from client.policy_errors import explain, line_of
from client.sharing_policy import SharingPolicy
from common.config.run import RunConfig
from common.config.secure_sums import count_cost
from common.errors import ConfigError, RefusedError
from common.methods.planners import PLANNERS
from common.methods.registry import METHODS, method_names
from common.privacy.options import PrivacyOptions, Unit
from common.tasks.registry import TASKS
from common.text import meant


def _has_epsilon_limit(options: dict[str, Any]) -> bool:
    """Return True if an ε is limited, from the options validated so far."""
    return any(math.isfinite(options.get(limit, math.inf)) for limit in ("max_epsilon", "max_epsilon_per_round"))


class Policy(SharingPolicy):
    """Policy of the data owner; these defaults hold without a file."""

    methods: tuple[str, ...] = Field(default_factory=method_names)
    """Methods in which this client takes part. A planner's inner method must be listed too, unless only
    planners are listed."""

    tasks: tuple[str, ...] = Field(default_factory=lambda: tuple(TASKS))
    """Tasks in which this client takes part."""

    allow_shared_sample: bool = False
    """True to opt in to sending windows of the training data in plaintext, for FedSTL's shared windows."""

    units: tuple[Unit, ...] = ("client", "record")
    """Units of privacy that this client accepts: everything it sends, or each of its records."""

    max_epsilon: float = Field(math.inf, gt=0)
    """Maximum ε of all noisy releases of these data, over all runs. After a release under one unit, the
    other unit is refused: it would be a second budget."""

    delta: float = Field(1e-5, gt=0, lt=1)
    """δ of `max-epsilon` and `max-epsilon-per-round`. With `max-epsilon`, runs with a larger δ are
    refused."""

    max_epsilon_per_round: float = Field(math.inf, gt=0)
    """Maximum ε of all releases of one round together, at `delta`; requests beyond it are refused."""

    require_noise: bool = Field(default_factory=_has_epsilon_limit)
    """True if this client sends only what noise covers: it refuses runs without noise, and runs that send
    ids of rated items. Replies and refusals themselves are not covered. True by default if `max-epsilon` or
    `max-epsilon-per-round` is set: data sent without noise have no ε."""

    strict_property: bool = False
    """True to refuse a run whose formula more than half of the past days violate.

    Otherwise the owner's log says so.
    """

    max_local_steps: int = Field(0, ge=0)
    """Maximum number of local steps per round, for slow machines; 0: no limit. The server accounts for
    fewer steps."""

    @field_validator("methods", "tasks")
    @classmethod
    def _check_installed(cls, names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        installed = method_names() if info.field_name == "methods" else tuple(TASKS)
        for name in names:
            if name not in installed:
                raise ValueError(f"unknown '{name}'{meant(name, installed)}")
        return names

    def check(self, config: RunConfig) -> None:
        """Refuse a run that requests more than the policy allows.

        Raises:
            RefusedError: The policy does not allow the run; the message contains no private data.
        """
        self.check_names(config.task, config.method, config.method_options.name)
        self._check_noise(config.privacy)
        self.check_trust(config.privacy)
        for key in sorted(config.capabilities.plaintext):
            if not getattr(self, key.replace("-", "_"), False):
                raise RefusedError(
                    f"the policy does not allow method '{config.method}' to send data in plaintext ({key} = false)"
                )
        if config.task_options.named_rows and self.require_noise:
            raise RefusedError(
                f"the policy requires differential privacy; task '{config.task}' sends row ids in plaintext under these options"
            )
        options = config.task_options
        if count_cost(config):
            self._check_noise(config.privacy if config.privacy.unit != "none" else options.count_privacy)
        elif options.count_offset is True:  # with `auto`, a run trains without the counts of this client
            self._check_noise(options.count_privacy)
            if options.count_privacy.unit == "none":
                self.check_counts(summed=config.privacy.resolved_trust == "helpers")

    def check_names(self, task: str, method: str, inner: str) -> None:
        """Refuse a task or a method by its name, before it is imported.

        Args:
            task: Name of the task.
            method: Name of the method or planner.
            inner: Name of the training method.

        Raises:
            RefusedError: A name is not installed or not allowed.
        """
        trains = {name for name in self.methods if name not in PLANNERS} or {*METHODS}
        for name, installed in ((method, method_names()), (inner, METHODS), (task, TASKS)):
            if name not in installed:
                raise RefusedError(f"'{name[:32]}' is not installed on this client")
        for name, allowed in ((method, self.methods), (inner, trains)):
            if name not in allowed:
                raise RefusedError(f"the policy does not allow method '{name}'")
        if task not in self.tasks:
            raise RefusedError(f"the policy does not allow task '{task}'")

    def _check_noise(self, options: PrivacyOptions) -> None:
        if options.unit == "none" and self.require_noise:
            raise RefusedError(
                "the policy requires differential privacy; set privacy.unit=client or privacy.unit=record"
            )
        if options.unit != "none" and options.unit not in self.units:
            raise RefusedError(
                f"the policy does not allow privacy.unit={options.unit} (units = {', '.join(self.units) or 'none'})"
            )
        if options.unit != "none" and math.isfinite(self.max_epsilon) and options.delta > self.delta:
            raise RefusedError(f"privacy.delta = {options.delta:g} exceeds the policy's delta = {self.delta:g}")

    def for_local_use(self) -> Self:
        """Return the policy of work that sends nothing: no noise is needed, and metrics are shown."""
        return self.model_copy(update={"require_noise": False, "share_metrics": "always"})

    def local_steps(self, requested: int) -> int:
        """Return τ_k, the number of local steps of this client if the server requests `requested`."""
        return min(requested, self.max_local_steps) if self.max_local_steps else requested


def read_policy(path: Path | None, *, is_generated: bool = False) -> Policy:
    """Read a policy file.

    Args:
        path: TOML file; None for the defaults.
        is_generated: True if the data are generated; without a file, their metrics are then always shared.

    Raises:
        ConfigError: The file cannot be read, or an option is unknown or invalid.
    """
    if path is None:
        generated = {"allow_counts": "summed", "share_metrics": "always", "min_sum": 2, "helpers_on_first_use": True}
        return Policy.model_validate(generated) if is_generated else Policy()
    text = ""
    try:
        text = path.read_text("utf-8-sig")
        return Policy.model_validate(tomllib.loads(text))
    except OSError as error:
        raise ConfigError(f"policy {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"policy {path} is not UTF-8 text; save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"policy {path}: {error}") from None
    except ValidationError as error:
        line = line_of(str(error.errors()[0]["loc"][0]), text)
        raise ConfigError(f"policy {path}{line}: {explain(error, Policy)}") from None
