"""Policy of the data owner, read from a TOML file; the client refuses requests beyond it."""

import math
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, Field, ValidationError, ValidationInfo, field_validator

from common.config.run import RunConfig
from common.errors import ConfigError, RefusedError
from common.methods.planners import PLANNERS, describe_unknown_method, method_names
from common.methods.registry import METHODS
from common.options import Options, kebab
from common.privacy.options import PrivacyOptions, ResolvedTrust, Unit
from common.tasks.registry import TASKS
from common.text import meant


def _accepted_trust(options: dict[str, Any]) -> tuple[ResolvedTrust, ...]:
    """Return the trusts that the owner accepts, from the options validated so far: pins ask for helpers."""
    return ("helpers",) if options.get("helpers") else ("local", "helpers")


class SharingPolicy(Options):
    """Counts, metrics and secure sums that the owner of the data allows."""

    allow_counts: Literal["never", "summed", "clear"] = "never"
    """Counts and other statistics of this client's data, for a model's offset or a closed form.

    They are `never` sent without noise, `summed` inside secure sums only, or sent in plaintext too: `clear`. `false` and
    `true` stand for `never` and `clear`.
    """

    allow_names: Literal["never", "summed", "clear"] = "never"
    """Names in this client's data, such as items, for a vocabulary that clients find together.

    Hashes of all names are sent first, then the names in hash buckets that enough clients have, as the server says. Values are
    those of `allow-counts`.
    """

    share_metrics: Literal["without_noise", "summed", "always", "never"] = "without_noise"
    """Runs in which metrics of held-out data are sent to the server.

    In runs with helpers and without noise they are in secure sums. In other runs without noise, `without_noise` sends
    them in plaintext; `always` includes runs with noise and opts in to that: no claim of such a run covers them. `summed` sends
    none in plaintext; it and `always` add them to sums with noise.
    """

    helpers: dict[str, Annotated[str, Field(pattern="^SHA256:[A-Za-z0-9+/]{43}$")]] = Field(default_factory=dict)
    """Pinned helpers: name -> fingerprint of their node key, as `fedloom keys show` prints it."""

    trust: tuple[ResolvedTrust, ...] = Field(default_factory=_accepted_trust)
    """Trust that this client accepts: `local`, noise drawn here; `helpers`, noise on secure sums.

    With pinned helpers it is `helpers` alone by default.
    """

    min_sum: int = Field(5, ge=2)
    """Minimum number of clients in a secure sum with this client; 2 for generated data."""

    min_helpers: int = Field(2, ge=1, le=5)
    """Minimum number of this client's pinned helpers among those of a run."""

    helpers_on_first_use: bool = False
    """True to pin the helpers of a first run as the server names them."""

    serve_as_helper: bool = False
    """True to help other clients with their secure sums, too, by the node key of `fedloom join`.

    The helper is called NAME-helper after the client. It learns what other helpers learn.
    """

    @field_validator("allow_counts", "allow_names", mode="before")
    @classmethod
    def _read_flag(cls, value: Any) -> Any:
        return ("clear" if value else "never") if isinstance(value, bool) else value

    def check_trust(self, options: PrivacyOptions) -> None:
        """Refuse a run whose guarantee relies on a party that the owner does not accept.

        Raises:
            RefusedError: The policy does not allow the trust.
        """
        if options.resolved_trust not in self.trust:
            allowed = ", ".join(self.trust) or "none"
            raise RefusedError(f"the policy does not allow privacy.trust={options.resolved_trust} (trust = {allowed})")

    def check_vocabulary(self, *, summed: bool) -> None:
        """Refuse to send names in the data, in plaintext or inside a secure sum, unless the owner opted in.

        Raises:
            RefusedError: The policy does not allow it.
        """
        remedy = f'; allow-names = "{"summed" if summed else "clear"}" does'
        _check_sent("names in the data", "allow-names", self.allow_names, summed, remedy)

    def shares_metrics(self, options: PrivacyOptions) -> bool:
        """Return True if metrics are sent to the server in plaintext in a run with these options."""
        is_exact = options.unit == "none" and options.resolved_trust == "local"
        return self.share_metrics == "always" or (self.share_metrics == "without_noise" and is_exact)

    def sums_metrics(self, options: PrivacyOptions) -> bool:
        """Return True if metrics are added to secure sums in a run with these options."""
        if options.resolved_trust != "helpers" or self.share_metrics == "never":
            return False
        return options.unit == "none" or (options.metric_share > 0 and self.share_metrics != "without_noise")


def remedies_of_sums(config: RunConfig) -> str:
    """Return what an owner or the server can do if exact sums are refused."""
    is_summed, network = config.privacy.resolved_trust == "helpers", TASKS[config.task].network.get("method")
    owner = f'write allow-counts = "{"summed" if is_summed else "clear"}" into the policy'
    server = [*["start with --helpers 2"][is_summed:], *([f"train a network by --method {network}"] if network else [])]
    return f"; the owner can {owner}" + (f", or the server can {' or '.join(server)}" if server else "")


REMOVED = {"allow-shared-sample": "no run asks for windows of training data; delete the line"}
"""Key of a policy that was removed -> the reason with the remedy."""


def explain(error: ValidationError, policy: type[BaseModel]) -> str:
    """Return the message about the first invalid option, with the closest valid one."""
    first = error.errors()[0]
    path = first["loc"]
    if path[-1] in REMOVED:
        return f"option '{path[-1]}' was removed: {REMOVED[str(path[-1])]}"
    if first["type"] == "extra_forbidden":
        return f"unknown option '{path[-1]}'{meant(str(path[-1]), map(kebab, policy.model_fields))}"
    if first["type"] == "literal_error" and path[0] == "units":
        unit = str(first.get("input"))
        return f"'units': unknown '{unit}'{meant(unit, get_args(Unit))}"
    return f"'{'.'.join(map(str, path))}': {first['msg'].removeprefix('Value error, ')}"


def line_of(key: str, text: str) -> str:
    """Return the place of a key in a TOML text: `, line 3`; empty if the key is not found."""
    for number, line in enumerate(text.splitlines(), start=1):
        if re.match(rf"""\s*(\[+\s*)?["']?{re.escape(key)}["']?\s*[\].=]""", line):
            return f", line {number}"
    return ""


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

    allow_harm: tuple[str, ...] = ()
    """Refused pairs of rules that `fedloom recommend --policy` shows, such as `open-entry`.

    Their names and reasons are in `client/tasks/rules/refused.toml`.
    """

    max_local_steps: int = Field(0, ge=0)
    """Maximum number of local steps per round, for slow machines; 0: no limit. The server accounts for
    fewer steps."""

    @field_validator("methods", "tasks")
    @classmethod
    def _check_installed(cls, names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        installed = method_names() if info.field_name == "methods" else tuple(TASKS)
        for name in names:
            if name in {**METHODS.moved, **PLANNERS.moved} and name not in installed:
                raise ValueError(describe_unknown_method(name))
            if name not in installed:
                raise ValueError(f"unknown '{name}'{meant(name, installed)}")
        return names

    def check(self, config: RunConfig) -> None:
        """Refuse a run that requests more than the policy allows.

        Raises:
            RefusedError: The policy does not allow the run; the message contains no private data.
        """
        self.check_names(config.task, config.method, config.method_options.name, config.first)
        self._check_noise(config.privacy)
        self.check_trust(config.privacy)
        if config.task_options.named_rows and self.require_noise:
            raise RefusedError(
                f"the policy requires differential privacy; task '{config.task}' sends row ids in plaintext under these options"
            )
        if config.has_closed_form and config.privacy.unit == "none":
            is_summed = config.privacy.resolved_trust == "helpers"
            _check_sent("statistics", "allow-counts", self.allow_counts, is_summed, remedies_of_sums(config))

    def check_names(self, task: str, method: str, inner: str, first: str = "") -> None:
        """Refuse a task or a method by its name, before it is imported.

        Raises:
            RefusedError: A name is not installed or not allowed.
        """
        trains = {name for name in self.methods if name not in PLANNERS} or {*METHODS}
        for name, installed in ((method, method_names()), (inner, METHODS), (first or inner, METHODS), (task, TASKS)):
            if name not in installed:
                raise RefusedError(f"'{name[:32]}' is not installed on this client")
        for name, allowed in ((method, self.methods), (inner, trains), (first or inner, trains)):
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
        """Return the policy of work that sends nothing: without noise, with sums and metrics."""
        return self.model_copy(update={"require_noise": False, "share_metrics": "always", "allow_counts": "clear"})

    def local_steps(self, requested: int) -> int:
        """Return τ_k, the number of local steps of this client if the server requests `requested`."""
        return min(requested, self.max_local_steps) if self.max_local_steps else requested


def read_policy(path: Path | None, *, is_generated: bool = False) -> Policy:
    """Read a policy file.

    Without a file the defaults hold; metrics of generated data are then always shared.

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


SUBSETS = ("methods", "tasks", "units", "trust", "allow_harm")
"""Lists of what is allowed."""

LOOSE_FLAGS = ("helpers_on_first_use", "serve_as_helper")
"""Flags that allow more if they are true."""

STRICT_FLAGS = ("require_noise", "strict_property")
"""Flags that allow more if they are false."""

UPPER, LOWER = ("max_epsilon", "delta", "max_epsilon_per_round"), ("min_sum", "min_helpers")
"""Upper and lower limits."""

WAYS = ("never", "summed", "clear")
"""Values of `allow-counts` and `allow-names`, the strictest first."""


def find_looser(policy: Policy, default: Policy) -> list[str]:
    """Return the keys of a policy that allow more than those of another."""
    asked, other = policy.model_dump(), default.model_dump()
    looser = {key: not {*asked[key]} <= {*other[key]} for key in SUBSETS}
    looser |= {key: asked[key] and not other[key] for key in LOOSE_FLAGS}
    looser |= {key: asked[key] > other[key] for key in UPPER} | {key: asked[key] < other[key] for key in LOWER}
    looser |= {key: other[key] and not asked[key] for key in STRICT_FLAGS}
    looser["max_local_steps"] = (asked["max_local_steps"] or math.inf) > (other["max_local_steps"] or math.inf)
    looser |= {key: WAYS.index(asked[key]) > WAYS.index(other[key]) for key in ("allow_counts", "allow_names")}
    looser["share_metrics"] = asked["share_metrics"] not in (other["share_metrics"], "never")
    looser["share_metrics"] &= other["share_metrics"] != "always"
    looser["helpers"] = not asked["helpers"].items() <= other["helpers"].items()
    return [key.replace("_", "-") for key in asked if looser[key]]


def _check_sent(values: str, key: str, allowed: str, summed: bool, remedy: str = "") -> None:
    """Raise RefusedError if a key of the policy does not allow such values in this way."""
    if allowed == "never" or (allowed == "summed" and not summed):
        way = "inside secure sums" if summed else "in plaintext"
        raise RefusedError(f"the policy does not allow sending {values} {way} ({key} = {allowed}){remedy}")
