"""What the owner of the data allows, read from a TOML file next to the data; the server's wishes are requests."""

import math
import tomllib
from pathlib import Path
from typing import Any, Literal, Self, get_args

from pydantic import Field, ValidationError, ValidationInfo, field_validator

from common.config.run import RunConfig
from common.errors import ConfigError, RefusedError
from common.methods.planners import PLANNERS
from common.methods.registry import METHODS, method_names
from common.options import Options, kebab, meant
from common.privacy.options import PrivacyOptions, Unit
from common.tasks.registry import TASKS


def _limits_epsilon(told: dict[str, Any]) -> bool:
    """Whether an ε is limited, of options as far as they were read without error."""
    return any(math.isfinite(told.get(limit, math.inf)) for limit in ("max_epsilon", "max_epsilon_per_round"))


class Policy(Options):
    """The owner's terms. A missing file means these defaults."""

    methods: tuple[str, ...] = Field(default_factory=method_names)
    """Methods this client takes part in; of a planner also the one inside, unless only planners are listed."""

    tasks: tuple[str, ...] = Field(default_factory=lambda: tuple(TASKS))
    """Tasks this client takes part in."""

    allow_counts: bool = False
    """Whether counts over this client's data may leave it in clear, as a model's offset needs."""

    allow_shared_sample: bool = False
    """Whether windows of this client's training data may leave it in clear, as FedSTL's authors have it."""

    units: tuple[Unit, ...] = ("client", "record")
    """What noise may hide: everything this client sends, or any one of its records."""

    max_epsilon: float = Field(math.inf, gt=0)
    """ε of everything that ever leaves these data with noise, over all runs and whatever is asked. So once something was
    released under one unit, the other is refused: it would be a second budget."""

    delta: float = Field(1e-5, gt=0, lt=1)
    """δ that goes with `max-epsilon`, under which a run with a larger one is refused, and with `max-epsilon-per-round`."""

    max_epsilon_per_round: float = Field(math.inf, gt=0)
    """ε of a single round, all that it asks for together, at `delta`; a request for more is refused."""

    require_noise: bool = Field(default_factory=_limits_epsilon)
    """Whether this client sends nothing that noise does not cover: runs without noise are refused, and runs that show which
    items were rated. Whether it answers at all, or refuses, is not covered. Unless the owner says otherwise, this goes with
    `max-epsilon` and `max-epsilon-per-round`: what leaves without noise has no ε."""

    share_metrics: Literal["without_noise", "always", "never"] = "without_noise"
    """When metrics of this client's own held-out data leave it, in clear. `always`, also in runs whose updates carry noise,
    is the owner's consent: no claim of such a run covers them."""

    max_local_steps: int = Field(0, ge=0)
    """Most local steps a round, 0 for no limit; a slow machine makes fewer, and the server accounts for it."""

    @field_validator("methods", "tasks")
    @classmethod
    def _names_are_installed(cls, names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        installed = method_names() if info.field_name == "methods" else tuple(TASKS)
        for name in names:
            if name not in installed:
                raise ValueError(f"unknown '{name}'{meant(name, installed)}")
        return names

    def check(self, config: RunConfig) -> None:
        """Refuse a run that asks for more than is allowed.

        Raises:
            RefusedError: The reason, free of private data, for the server's log.
        """
        self.check_names(config.task, config.method, config.method_options.name)
        self._check_noise(config.privacy)
        for key in sorted(config.capabilities.plaintext):
            if not getattr(self, key.replace("-", "_"), False):
                raise RefusedError(
                    f"method '{config.method}' sends data in plaintext,"
                    f" which this client's policy does not allow ({key} = false)"
                )
        if config.task_options.named_rows and self.require_noise:
            raise RefusedError(
                f"task '{config.task}' sends row ids in plaintext under these options, which no noise covers; this client's"
                " policy requires noise"
            )
        if not config.task_options.count_offset:
            return
        self._check_noise(config.task_options.count_privacy)
        if config.task_options.count_privacy.unit == "none" and not self.allow_counts:
            raise RefusedError(
                f"tasks.{config.task}.count-offset needs counts in clear, which this client's policy does not allow"
            )

    def check_names(self, task: str, method: str, inner: str) -> None:
        """Refuse a task or a method by its name, before anything of it is imported.

        Args:
            task: Name of the task.
            method: Name of the method, which may be a planner.
            inner: Name of the method that trains.

        Raises:
            RefusedError: One of them is not installed, or not allowed.
        """
        trains = {name for name in self.methods if name not in PLANNERS} or {*METHODS}
        for name, installed in ((method, method_names()), (inner, METHODS), (task, TASKS)):
            if name not in installed:
                raise RefusedError(f"'{name[:32]}' is not installed on this client")
        for name, allowed in ((method, self.methods), (inner, trains)):
            if name not in allowed:
                raise RefusedError(f"method '{name}' is not allowed by this client's policy")
        if task not in self.tasks:
            raise RefusedError(f"task '{task}' is not allowed by this client's policy")

    def _check_noise(self, wished: PrivacyOptions) -> None:
        if wished.unit == "none" and self.require_noise:
            raise RefusedError("this client's policy requires noise; run with privacy.unit=client, or record")
        if wished.unit != "none" and wished.unit not in self.units:
            raise RefusedError(f"privacy.unit={wished.unit} is not allowed by this client's policy")
        if wished.unit != "none" and math.isfinite(self.max_epsilon) and wished.delta > self.delta:
            raise RefusedError(f"privacy.delta={wished.delta:g} is above the {self.delta:g} of this client's policy")

    def shares_metrics(self, wished: PrivacyOptions) -> bool:
        """Whether metrics may leave in a run."""
        return self.share_metrics == "always" or (self.share_metrics == "without_noise" and wished.unit == "none")

    def at_home(self) -> Self:
        """The terms of work that nothing leaves of: no noise is needed, and the owner sees the metrics."""
        return self.model_copy(update={"require_noise": False, "share_metrics": "always"})

    def local_steps(self, wished: int) -> int:
        """τ_k, the steps this client makes when the server wishes that many."""
        return min(wished, self.max_local_steps) if self.max_local_steps else wished


def read_policy(path: Path | None, *, made: bool = False) -> Policy:
    """Read a policy file; None gives the defaults, and of made data, which nobody owns, metrics are shared.

    Raises:
        ConfigError: The file is missing or says something unknown.
    """
    if path is None:
        return Policy(share_metrics="always") if made else Policy()
    try:
        return Policy.model_validate(tomllib.loads(path.read_text("utf-8-sig")))
    except OSError as error:
        raise ConfigError(f"policy {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"policy {path}: no UTF-8 text; save it as such") from None
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        where = _explained(error) if isinstance(error, ValidationError) else str(error)
        raise ConfigError(f"policy {path}: {where}") from None


def _explained(error: ValidationError) -> str:
    """What is wrong with the first thing that is, and what was probably meant."""
    first = error.errors()[0]
    place = first["loc"]
    if first["type"] == "extra_forbidden":
        return f"unknown option '{place[-1]}'{meant(str(place[-1]), map(kebab, Policy.model_fields))}"
    if first["type"] == "literal_error" and place[0] == "units":
        given = str(first.get("input"))
        return f"'units': unknown '{given}'{meant(given, get_args(Unit))}"
    return f"'{'.'.join(map(str, place))}': {first['msg'].removeprefix('Value error, ')}"
