"""The run's configuration: Flower's flat `run_config` or a person's `--set a.b=c`, parsed once, frozen afterwards."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, Field, ValidationError, model_validator

from common.config.federation import Federation as Federation
from common.config.validation_split import check_share, with_share
from common.errors import ConfigError
from common.methods.registry import (
    ADAP,
    ADPML,
    METHODS,
    Algorithm,
    AlgorithmOptions,
    BGTplanner,
    FedSGD,
    Method,
    Planner,
    Uniform,
)
from common.options import Options, hint, leaves, meant
from common.options import Scalar as Scalar
from common.privacy.options import PrivacyOptions
from common.tasks.markets.options import MarketsOptions
from common.tasks.registry import TASKS as TASKS
from common.tasks.registry import AnyTask, TaskOptions
from common.tasks.registry import Task as Task


class RunConfig(Options):
    """One training of one method on one task."""

    run_id: str = ""
    """Name of the run's folder; empty makes one from date, method and task."""

    method: Method = "fedrule"
    """Which paper's algorithm trains."""

    task: Task = "rules"
    """What is learnt."""

    model: Literal["default", "paper"] = "default"
    """`paper` is the paper's own model; `default` is the best we know under the same federation."""

    rounds: int = Field(30, ge=1)
    """Rounds of training."""

    seed: int = Field(0, ge=0, lt=2**63)
    """Root of every random choice: one seed, one result."""

    evaluate_every: int = Field(1, ge=1)
    """Clients evaluate the global model every so many rounds, and after the last."""

    catalogue: str = "demo"
    """The task's public vocabulary: `demo`, or the path of a JSON file on the server."""

    resume: bool = False
    """Go on with the run named `run-id` from its newest checkpoint."""

    federation: Federation = Federation()
    privacy: PrivacyOptions = PrivacyOptions()
    algorithm: AlgorithmOptions = AlgorithmOptions()
    tasks: TaskOptions = TaskOptions()

    @property
    def chosen(self) -> Algorithm:
        """The hyper-parameters of the method that trains: `method`, or the one inside a planner."""
        own = self._own
        algorithm: Algorithm = getattr(self.algorithm, own.inner) if isinstance(own, Planner) else own
        return algorithm

    @property
    def planner(self) -> Planner:
        """How the privacy budget is spent; evenly, where the method does not say."""
        return self._own if isinstance(self._own, Planner) else Uniform()

    @property
    def planned(self) -> bool:
        """Whether anything has to be planned: a budget, or when to stop."""
        return self.privacy.unit != "none" or isinstance(self._own, Planner)

    @property
    def _own(self) -> Algorithm | Planner:
        own: Algorithm | Planner = getattr(self.algorithm, self.method)
        return own

    @property
    def task_options(self) -> AnyTask:
        """The options of `task`."""
        options: AnyTask = getattr(self.tasks, self.task)
        return options

    @property
    def count_privacy(self) -> PrivacyOptions:
        """The noise on counts that a model starts from; of unit `none`, they leave in clear."""
        options = self.task_options
        if isinstance(options, MarketsOptions) and options.count_epsilon:
            return PrivacyOptions(unit="record", epsilon=options.count_epsilon, delta=options.count_delta)
        return PrivacyOptions()

    @model_validator(mode="before")
    @classmethod
    def _planners_hold_something_out(cls, given: Any) -> Any:
        return with_share(given)

    @model_validator(mode="after")
    def _noise_fits_the_method(self) -> Self:
        planner, unit = self._own, self.privacy.unit
        if isinstance(planner, FedSGD) and unit != "none":
            raise ValueError(f"fedsgd adds no noise; leave privacy.unit={unit} out, or choose another planner")
        if isinstance(planner, BGTplanner | ADPML | ADAP | Uniform) and unit == "none":
            raise ValueError(f"{self.method} plans a privacy budget; say privacy.unit=client, or record")
        if unit == "record" and self.task != "rules" and (self.task, self.model) != ("sessions", "paper"):
            where = "in task rules, by home, and in task sessions under model=paper, by session"
            raise ValueError(f"privacy.unit=record tells records apart {where}; say privacy.unit=client")
        self.privacy.check_records(self.chosen.name)
        if self.task == "ratings":
            self.tasks.ratings.check_items(self.model, self.chosen.name)
        if isinstance(planner, Planner) and planner.by_rewards:
            check_share(self.method, self.task, self.task_options.validation_share)
        if isinstance(planner, Planner) and planner.by_rewards and self.evaluate_every != 1:
            raise ValueError(f"{self.method} goes by what each round gains; leave evaluate-every at 1")
        return self

    @model_validator(mode="after")
    def _only_the_chosen_method_is_set_and_fits_the_task(self) -> Self:
        if self.chosen.name == "fedstl" and self.task != "traffic":
            what = "fedstl clusters clients by what their time series obey"
            raise ValueError(f"{what}; task '{self.task}' has none, say task=traffic")
        if hands_over_windows(self):
            if self.privacy.unit != "none":
                raise ValueError(
                    "algorithm.fedstl.cluster-data=shared_sample hands windows over in clear; leave noise out"
                )
            if self.tasks.traffic.property == "difference":
                raise ValueError("algorithm.fedstl.cluster-data=shared_sample judges ranges; choose another property")
        if self.chosen.name == "pfgnn" and self.task != "markets":
            raise ValueError(f"pfgnn is made for markets of items; task '{self.task}' has none, say task=markets")
        if self.chosen.name == "pfgnn" and self.model == "paper" and self.tasks.markets.network != "sgc":
            raise ValueError("pfgnn shares encoders of SGC; say tasks.markets.network=sgc, or another method")
        for other in sorted(self.algorithm.model_fields_set - {self.method, self.chosen.name}):
            raise ValueError(f"algorithm.{other} is set, but the method is {self.method}; it would be ignored")
        return self


def hands_over_windows(config: RunConfig) -> bool:
    """Whether the run takes windows of training data from its clients, in clear."""
    return config.chosen.name == "fedstl" and config.algorithm.fedstl.cluster_data == "shared_sample"


def parse(flat: Mapping[str, Scalar]) -> RunConfig:
    """Parse dotted keys such as `algorithm.fedrule.lam`.

    Raises:
        ConfigError: An unknown or mistyped key, named by its path, with the key that was probably meant.
    """
    tree: dict[str, Any] = {}
    for key, value in flat.items():
        *parents, leaf = key.split(".")
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
            if not isinstance(node, dict):
                raise ConfigError(f"'{key}': '{parent}' is both a value and a section")
        node[leaf] = value
    try:
        return RunConfig.model_validate(tree)
    except ValidationError as error:
        raise ConfigError(
            "; ".join(_explain(e["loc"], e["type"], e["msg"], e.get("input")) for e in error.errors())
        ) from None


def option_keys() -> tuple[str, ...]:
    """Every key a person may set."""
    return tuple(key for key, _ in leaves(RunConfig().model_dump(by_alias=True), "") if not key.endswith(".name"))


def _to_depth(depth: int) -> list[str]:
    """What may stand where a key of so many parts was mistyped: keys, and sections that hold more of them."""
    return list(dict.fromkeys(".".join(key.split(".")[:depth]) for key in option_keys()))


def _explain(place: tuple[int | str, ...], kind: str, message: str, given: object) -> str:
    path = ".".join(str(part) for part in place)
    if kind == "extra_forbidden":
        return f"unknown option '{path}'{hint(path, _to_depth(len(place)), cutoff=0.5)}"
    if kind == "literal_error" and place in (("method",), ("task",)):
        choices = METHODS if place == ("method",) else TASKS
        return f"unknown {path} '{given}'{meant(str(given), choices)}"
    message = message.removeprefix("Value error, ")
    return f"'{path}': {message} (got {given!r})" if path and not isinstance(given, (dict, BaseModel)) else message
