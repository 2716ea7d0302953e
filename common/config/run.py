"""Configuration of a run: its sections, supported combinations of options, and what follows from them."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Self

from pydantic import (
    Field,
    SerializeAsAny,
    ValidationError,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)

from common.config.federation import Federation, RobustRule
from common.config.secure_sums import SecureSumsOptions
from common.errors import ConfigError
from common.methods.base import MethodOptions
from common.methods.planners import PLANNERS, PlannerOptions, Uniform, describe_unknown_method, method_names
from common.methods.registry import FIRST_METHOD, METHODS
from common.options import Options
from common.privacy.accounts import gdp_of
from common.privacy.options import PrivacyOptions
from common.privacy.vectors import Sign
from common.tasks.closed_form import AnyClosedForm
from common.tasks.names import NameNoise
from common.tasks.networks import NETWORKS, check_network, describe_unknown_model, label, model_names
from common.tasks.options import VARIANTS, Capabilities, TaskOptions
from common.tasks.registry import FIRST_TASK, TASKS
from common.tasks.spec import OptionsT, TaskRun, TaskSpec, VocabularyT
from common.tasks.vocabulary import FEDERATED, Vocabulary
from common.text import count


def names_rows(config: "RunConfig") -> bool:
    """Return True if updates hold rows of tables with their ids; noise and masks cover all rows."""
    return config.keeps_rows and _is_plain(config)


def check_rows(config: "RunConfig") -> None:
    """Accept the combination of options for runs whose clients name or gather rows.

    Raises:
        ValueError: The combination is not supported.
    """
    federation, task, has_noise = config.federation, config.task_options, config.privacy.unit != "none"
    if federation.encoding != "float32" and (task.named_rows or has_noise):
        reason = "named rows" if task.named_rows else "noise"
        raise ValueError(
            f"federation.encoding={federation.encoding} does not apply to runs with {reason}; set federation.encoding=float32"
        )
    if task.named_rows and config.robust not in ("none", "multi-krum"):  # rows that were not sent would be zeros
        raise ValueError(
            f"federation.robust={federation.robust} does not apply to named rows; set federation.robust=multi-krum"
        )
    if task.gathers_rows and (obstacle := _find_obstacle(config)):
        raise ValueError(f"tasks.{config.task}.{task.gathers_rows} does not apply: {obstacle}")


def resolve_rows(config: "RunConfig", vocabulary: Vocabulary) -> "RunConfig":
    """Return the configuration of a run in which the task knows whether clients gather rows.

    They gather none where noise or masks would restore whole tables, and where `check_rows` refuses it.
    """
    is_possible = _is_plain(config) and not _find_obstacle(config)
    options = config.task_options.resolve_rows(vocabulary, is_possible=is_possible)
    return config if options is config.task_options else config.model_copy(update={"task_options": options})


def _is_plain(config: "RunConfig") -> bool:
    return config.privacy.unit == "none" and config.privacy.resolved_trust != "helpers"


def _find_obstacle(config: "RunConfig") -> str:
    """Return the reason why the local steps of a run cannot gather rows; empty if they can."""
    options, capabilities, federation = config.method_options, config.capabilities, config.federation
    if capabilities.moves_all_rows:
        return f"{options.name} moves all rows of a table in each step"
    if capabilities.private_layers == "all" or capabilities.own_model != "none":
        return f"{options.name} has a whole model on each client"
    if not capabilities.sum_only:
        return f"{options.name} needs whole tables of single clients"
    if options.optimizer == "adam" and options.moments == "persist":
        return "Adam's persistent moments move rows that a round does not gather; set training.moments=reset"
    if config.model not in VARIANTS:
        return f"{label(config.model)} has no table whose rows are known"
    if federation.robust not in ("none", "auto"):
        return f"federation.robust={federation.robust} would take rows that were not gathered for zeros"
    if federation.updates == "dense":
        return "federation.updates=dense sends whole tables, whose zeros name the same rows"
    if config.privacy.unit == "record":
        return "privacy.unit=record draws noise for all rows in each step"
    return ""


def find_obstacle(config: "RunConfig") -> str:
    """Return the reason why a run cannot work on secure sums; empty if it can."""
    capabilities, privacy, method = config.capabilities, config.privacy, config.method_options.name
    if not (capabilities.sum_only or capabilities.clusters):
        return f"{method} {capabilities.replies_reason}"
    if capabilities.private_layers == "all":
        return f"{method} sends no updates"
    if capabilities.clusters and config.secure_sums.groups > 1:
        return f"{method} has a sum of clusters, which secure-sums.groups={config.secure_sums.groups} would split"
    if config.federation.robust not in ("none", "auto"):
        return f"federation.robust={config.federation.robust} needs the replies of single clients"
    if config.federation.encoding != "float32":
        return f"federation.encoding={config.federation.encoding} rounds the numbers of single replies"
    if rows := config.task_options.named_rows:
        return f"the server adds up the rows of table '{rows.table}' that each client names (tasks.{config.task})"
    if privacy.unit == "record" and privacy.metric_share:
        return "privacy.metric-share is noise of helpers, and privacy.unit=record adds its noise at the clients"
    if privacy.unit == "client" and privacy.mechanism != "gaussian":
        return f"privacy.mechanism={privacy.mechanism} is noise of one client's own"
    return ""


UNCOVERED_NAMES = (
    "catalogue=federated needs noise of helpers on sums of names: a name of one client alone cannot have noise"
)
"""Reason why other noise covers no names."""


def read_planner_options(sections: Any, method: str) -> PlannerOptions | None:
    """Return the options of the planner named `method`, from sections by name; None if it is no planner.

    Raises:
        ValidationError: A section or an option is unknown, or a value is invalid.
    """
    options = _read_chosen(sections, method, _method_class) if method in PLANNERS else None
    return options if isinstance(options, PlannerOptions) else None


def _method_class(name: str) -> type[Options] | None:
    if name in PLANNERS:
        return PLANNERS[name].options
    return METHODS[name].options if name in METHODS else None


def _read_chosen(sections: Any, name: str, class_of: Callable[[str], type[Options] | None]) -> Options:
    """Validate every section that has a class; return the section `name`, or its defaults if absent."""
    if not isinstance(sections, Mapping):
        sections = {}
    classes = {key: kind for key in dict.fromkeys([name, *sections]) if (kind := class_of(key))}
    fields: dict[str, Any] = {key: (kind, Field(default_factory=kind)) for key, kind in classes.items()}
    options: Options = getattr(create_model("Sections", __base__=Options, **fields).model_validate(sections), name)
    return options


def _add_validation_share(tree: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a raw configuration with a validation split if the run needs one and none is set."""
    task, tasks = tree.get("task", FIRST_TASK), tree.get("tasks", {})
    section = tasks.get(task, {}) if isinstance(tasks, Mapping) else None
    if not isinstance(section, Mapping) or {"validation-share", "validation_share"} & section.keys():
        return tree
    stops_early = _value_of(tree.get("federation"), "stop", 0)
    planner = _find_planner(tree)
    if task not in TASKS or not ((planner and planner.by_rewards) or stops_early or tree.get("first")):
        return tree
    return {**tree, "tasks": {**tasks, task: {**section, "validation-share": TASKS[task].planner_validation_share}}}


def _limit_rounds(tree: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a raw configuration that ends with the last sum if its method solves a closed form."""
    if not isinstance(rounds := tree.get("rounds", 1), int) or rounds < 1:
        return tree  # refused when it is validated
    planner, task = _find_planner(tree), tree.get("task", FIRST_TASK)
    method = planner.inner if planner else tree.get("method", "")
    if method not in METHODS or task not in TASKS or not METHODS[method].options().capabilities().closed_form:
        return tree
    form, unit = TASKS[task].closed_form, _value_of(tree.get("privacy", {}), "unit", "none")
    sums = _count_sums(form, has_noise=unit != "none") if form else 1
    return {**tree, "rounds": sums, "evaluate-every": sums}


def _count_sums(form: AnyClosedForm, *, has_noise: bool) -> int:
    return form.noised_sums if has_noise else form.sums


def _choose_accounting(tree: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a raw configuration that says how noise on records is charged."""
    privacy = tree.get("privacy", {})
    if _value_of(privacy, "unit", "none") != "record" or _value_of(privacy, "accounting", "auto") != "auto":
        return tree
    chosen: dict[str, Any] = {"accounting": "plan" if (_find_planner(tree) or Uniform()).equal_costs else "filter"}
    changed = {**privacy, **chosen} if isinstance(privacy, Mapping) else privacy.model_copy(update=chosen)
    return {**tree, "privacy": changed}


def _value_of(section: Any, name: str, default: Any) -> Any:
    """Return an option of a raw or a validated section."""
    return section.get(name, default) if isinstance(section, Mapping) else getattr(section, name, default)


def _find_planner(tree: Mapping[str, Any]) -> PlannerOptions | None:
    try:
        return read_planner_options(tree.get("algorithm", {}), tree.get("method", ""))
    except ValidationError:  # reported when the section itself is validated
        return None


class RunConfig(Options):
    """Configuration of a run: one training of one method on one task."""

    run_id: str = ""
    """Name of the run's folder; if empty, date, method and task form the name."""

    method: str = FIRST_METHOD
    """Name of the training method, or of a planner around a training method."""

    task: str = FIRST_TASK
    """Name of the learning task."""

    model: str = "default"
    """Model: `default`, the most accurate one here, `paper`, that of the task's paper, or a package's."""

    rounds: int = Field(30, ge=1)
    """Number of training rounds."""

    seed: int = Field(0, ge=0, lt=2**63)
    """Seed of every random choice except DP noise."""

    evaluate_every: int = Field(1, ge=1)
    """Number of rounds from one evaluation to the next; the last round is always evaluated."""

    catalogue: str = "demo"
    """Public vocabulary of the task: `demo`, the path of a JSON file on the server, or `federated`.

    `federated`: the clients find it before the first round. It has the names in the data of `federation.min-holders` clients.
    """

    resume: bool = False
    """Resume the run named `run-id` from its newest checkpoint."""

    first: str = ""
    """Name of a method in closed form whose sums come before the training; empty for none.

    The network then trains on top of what they solve. The first of the run's rounds are those of the sums."""

    start_from: str = ""
    """Name of the finished run from whose model, or sums, this one starts; empty for none."""

    half_life: float = Field(0.0, ge=0, allow_inf_nan=False)
    """Days in which sums of the run in `start-from` lose half of their weight; 0: they keep it.

    The days are those between the starts of both runs."""

    federation: Federation = Federation()
    privacy: PrivacyOptions = PrivacyOptions()
    secure_sums: SecureSumsOptions = SecureSumsOptions()
    method_options: SerializeAsAny[MethodOptions] = Field({}, validation_alias="algorithm", validate_default=True)
    """Options of the training method; for a planner, of its inner method."""

    planner_options: SerializeAsAny[PlannerOptions] | None = Field(
        {}, validation_alias="algorithm", validate_default=True
    )
    """Options of the planner; None if `method` is a training method."""

    first_options: SerializeAsAny[MethodOptions] | None = Field({}, validation_alias="algorithm", validate_default=True)
    """Options of the method `first`; None without one."""

    task_options: SerializeAsAny[TaskOptions] = Field({}, validation_alias="tasks", validate_default=True)
    """Options of the learning task."""

    @cached_property
    def first_rounds(self) -> int:
        """Number of rounds before the training, one for each sum of the method `first`; 0 without one."""
        form = TASKS[self.task].closed_form if self.first_options else None
        return _count_sums(form, has_noise=self.privacy.unit != "none") if form else 0

    @property
    def phases(self) -> tuple["RunConfig", ...]:
        """Configurations of the run's phases: of the sums of `first`, if there are any, and of the training."""
        return (self._sums, self) if self.first else (self,)

    @cached_property
    def _sums(self) -> "RunConfig":
        rounds, none = self.first_rounds, {"first": "", "first_options": None, "planner_options": None}
        sums = {"method": self.first, "method_options": self.first_options, "rounds": rounds, "evaluate_every": rounds}
        return self.model_copy(update={**none, **sums})

    def at(self, number: int) -> "RunConfig":
        """Return the configuration of the phase of a round."""
        return self.phases[0 if number <= self.first_rounds else -1]

    @property
    def robust(self) -> RobustRule:
        """Rule of aggregation; `auto` is the mean where control variates or sums need it."""
        capabilities, task = self.capabilities, self.task_options
        is_summed = capabilities.closed_form or self.privacy.unit != "none" or self.privacy.resolved_trust == "helpers"
        has_means = is_summed or capabilities.needs_gradient or task.named_rows or task.gathers_rows
        found: RobustRule = "none" if has_means else "geometric-median"
        return found if self.federation.robust == "auto" else self.federation.robust

    @property
    def has_closed_form(self) -> bool:
        """True if the server solves a closed form, in all rounds or before the training."""
        return self.phases[0].capabilities.closed_form

    @property
    def clients_to_begin(self) -> int:
        """Number of clients for which the run waits; to find a vocabulary, as many as a name needs."""
        return max(self.federation.min_clients, self.federation.min_holders * (self.catalogue == FEDERATED))

    @property
    def planner(self) -> PlannerOptions:
        """Options of the planner; without a planner, those of the even split `uniform`."""
        return self.planner_options or Uniform()

    @property
    def needs_planner(self) -> bool:
        """True if noise is on or the method is a planner."""
        return self.privacy.unit != "none" or self.planner_options is not None

    @cached_property
    def capabilities(self) -> Capabilities:
        """Capabilities of the training method."""
        return self.method_options.capabilities()

    @property
    def keeps_rows(self) -> bool:
        """True if the server adds up rows of tables as they were sent, without whole tables in between."""
        return bool(self.task_options.gathers_rows) or self.capabilities.closed_form

    @property
    def upload_sign(self) -> Sign:
        """Sign of the numbers of an upload in sums with noise."""
        form = TASKS[self.task].closed_form
        return form.noised_sign if form and self.capabilities.closed_form else "signed"

    @cached_property
    def metric_cost(self) -> float:
        """Cost μ²/2 of summed metrics of the final model, for each client; 0 for none."""
        privacy = self.privacy
        if privacy.resolved_trust != "helpers" or privacy.unit != "client" or not privacy.metric_share:
            return 0.0
        return privacy.metric_share * gdp_of(privacy.epsilon, privacy.delta)

    @cached_property
    def name_cost(self) -> float:
        """Cost μ²/2 of names for a vocabulary, for each client; 0 without noise and without such sums."""
        privacy = self.privacy
        if self.catalogue != FEDERATED or privacy.resolved_trust != "helpers" or privacy.unit != "client":
            return 0.0
        return privacy.name_share * gdp_of(privacy.epsilon, privacy.delta)

    @property
    def name_noise(self) -> NameNoise | None:
        """Noise on sums of names; None without."""
        privacy, cost = self.privacy, self.name_cost
        return NameNoise(cost, privacy.epsilon, privacy.delta, self.secure_sums.helpers) if cost else None

    @property
    def side_cost(self) -> float:
        """Cost μ²/2 of all releases of a client beside updates, in runs with noise of helpers."""
        return self.metric_cost + self.name_cost

    def options_of(self, spec: TaskSpec[OptionsT, VocabularyT]) -> OptionsT:
        """Return the task's options as the class of the spec.

        Raises:
            ConfigError: The run has another task.
        """
        if not isinstance(self.task_options, spec.options):
            raise ConfigError(f"the run has task '{self.task}', not '{spec.name}'")
        return self.task_options

    def task_run(
        self, spec: TaskSpec[OptionsT, VocabularyT], vocabulary: VocabularyT
    ) -> TaskRun[OptionsT, VocabularyT]:
        """Return the part of the configuration that task code receives.

        Raises:
            ConfigError: The run has another task.
        """
        options = self.options_of(spec)
        rounds, on_top = self.rounds - self.first_rounds, bool(self.first)
        about = self.model, self.method_options, self.privacy, rounds, self.seed, on_top
        return TaskRun(options, vocabulary, *about)

    @field_validator("method")
    @classmethod
    def _check_method(cls, name: str) -> str:
        if name not in method_names():
            raise ValueError(describe_unknown_method(name))
        return name

    @field_validator("task")
    @classmethod
    def _check_task(cls, name: str) -> str:
        if name not in TASKS:
            raise ValueError(TASKS.describe_unknown(name))
        return name

    @field_validator("model")
    @classmethod
    def _check_model(cls, name: str) -> str:
        if name not in model_names():
            raise ValueError(describe_unknown_model(name))
        return name

    @field_validator("first")
    @classmethod
    def _check_first_name(cls, name: str) -> str:
        if name and name not in METHODS:
            raise ValueError(METHODS.describe_unknown(name))
        if name and not METHODS[name].options().capabilities().closed_form:
            raise ValueError(f"method {name} has no sums that could come first; set first=ridge")
        return name

    @field_validator("method_options", "planner_options", "first_options", "task_options", mode="before")
    @classmethod
    def _choose(cls, value: Any, info: ValidationInfo) -> Any:
        """Return the options of the chosen name; the defaults if the name is unknown, which is reported once."""
        chooser, first = {
            "task_options": ("task", FIRST_TASK),
            "first_options": ("first", ""),
        }.get(str(info.field_name), ("method", FIRST_METHOD))
        if value is None or isinstance(value, Options):
            return value
        name, sections = info.data.get(chooser, first), value if chooser in info.data else {}
        if chooser == "task":
            return _read_chosen(sections, name, lambda task: TASKS[task].options if task in TASKS else None)
        if chooser == "first":
            return _read_chosen(sections, name, _method_class) if name else None
        planner = read_planner_options(sections, name)
        if info.field_name == "planner_options":
            return planner
        return _read_chosen(sections, planner.inner if planner else name, _method_class)

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, value: Any) -> Any:
        """Add a validation split for a planner that needs rewards; a closed form has as many rounds as sums."""
        return _choose_accounting(_limit_rounds(_add_validation_share(value))) if isinstance(value, Mapping) else value

    @model_validator(mode="after")
    def _check(self) -> Self:
        for phase in self.phases:
            phase._check_noise()
            phase._check_method_and_task()
        if self.first:
            self._check_first()
        return self

    def _check_noise(self) -> None:
        unit, planner = self.privacy.unit, self.planner_options
        if planner and not planner.needs_noise and unit != "none":
            raise ValueError(f"{self.method} adds no noise; remove privacy.unit={unit} or choose another planner")
        if planner and planner.needs_noise and unit == "none":
            raise ValueError(f"{self.method} plans a privacy budget; set privacy.unit=client or privacy.unit=record")
        if unit == "record":
            self._check_records()
        if self.capabilities.closed_form:
            self._check_closed_form()
        if not self.task_options.validation_share:
            self._check_without_validation()
        if planner and planner.by_rewards and self.evaluate_every != 1:
            raise ValueError(f"{self.method} needs the reward of every round; set evaluate-every=1")

    def _check_method_and_task(self) -> None:
        capabilities, method = self.capabilities, self.method_options.name
        if capabilities.tasks and self.task not in capabilities.tasks:
            suited = " or ".join(f"task={task}" for task in sorted(capabilities.tasks))
            raise ValueError(f"{method} {capabilities.tasks_reason}, which task '{self.task}' lacks; set {suited}")
        if self.half_life and not (self.start_from and capabilities.closed_form):
            raise ValueError(
                "half-life is the decay of earlier sums; set start-from=RUN and a method in closed form, such as method=ridge"
            )
        self._check_vocabulary()
        if self.model == "paper" and not TASKS[self.task].paper:
            raise ValueError(f"task '{self.task}' has no model of a paper; remove --model paper, or set model=default")
        if self.model in NETWORKS:
            check_network(self.model, self.task, method, capabilities, has_sums=bool(self.first))
        check_rows(self)
        self.method_options.check(self.task_options, self.model)
        self.task_options.check(self.model, method, capabilities)
        if self.privacy.trust == "helpers" and (obstacle := find_obstacle(self)):
            raise ValueError(f"{obstacle}; set privacy.trust=local")

    def _check_first(self) -> None:
        """Check that a training follows the sums of `first`, and that their method supports the run's options."""
        name = self.method_options.name
        if self.capabilities.closed_form:
            raise ValueError(f"method {name} has no training after its sums; remove first={self.first}")
        if self.start_from:
            raise ValueError(f"a run with start-from has one phase; remove start-from, or first={self.first}")
        if (form := TASKS[self.task].closed_form) and self.model not in form.on_top:
            suited = "; ".join(f"set model={model}" for model in form.on_top) or f"remove first={self.first}"
            raise ValueError(f"model={self.model} of task '{self.task}' does not train on top of sums; {suited}")
        if self.rounds <= self.first_rounds:
            raise ValueError(
                f"rounds={self.rounds} leaves no round of {name}: {self.first} has {count(self.first_rounds, 'sum')}, one a"
                f" round; set rounds above {self.first_rounds}"
            )

    def _check_vocabulary(self) -> None:
        """Check that clients can find the vocabulary together, if they have to."""
        if self.catalogue != FEDERATED:
            return
        if self.start_from:
            raise ValueError(
                "a run with start-from has the names of that run; remove catalogue=federated, or start-from"
            )
        if not TASKS[self.task].vocabulary.is_listed:
            noun = TASKS[self.task].vocabulary.noun()
            raise ValueError(
                f"catalogue=federated does not apply to the {noun} of task '{self.task}', which have more than names; name a"
                " file"
            )
        privacy = self.privacy
        if privacy.unit == "none":
            return
        if privacy.unit == "record" or privacy.trust not in ("auto", "helpers") or not privacy.name_share:
            raise ValueError(
                f"{UNCOVERED_NAMES}; set privacy.unit=client, privacy.trust=helpers and privacy.name-share above 0, or name a"
                " file, such as catalogue.json of an earlier run"
            )
        if privacy.name_share + privacy.metric_share >= 1:
            raise ValueError("privacy.name-share and privacy.metric-share leave nothing for updates")

    def _check_without_validation(self) -> None:
        """Check that neither the planner nor an early stop needs a validation split."""
        remedy = f"set tasks.{self.task}.validation-share above 0"
        if self.planner_options and self.planner_options.by_rewards:
            raise ValueError(f"{self.method} needs rewards, which the test split must not provide; {remedy}")
        if self.federation.stop:
            raise ValueError(
                f"federation.stop={self.federation.stop} needs metrics, which the test split must not provide; {remedy}"
            )

    def _check_closed_form(self) -> None:
        """Check that the task has a closed form, and that all clients weigh the same."""
        name, form = self.method_options.name, TASKS[self.task].closed_form
        if form is None:
            able = ", ".join(task for task in TASKS if TASKS[task].closed_form)
            raise ValueError(
                f"method {name} needs a closed form, which task '{self.task}' lacks; tasks with one: {able}"
            )
        self._check_min_count(self.capabilities.min_count)
        if self.planner.learns:
            raise ValueError(
                f"{self.method} learns from the rewards of many rounds, and method {name} has {count(self.rounds, 'round')};"
                f" set method={name}, or first={name} and planner.inner to a method that trains"
            )

    def _check_min_count(self, least: int) -> None:
        """Check that sums hold the exact number of clients with each row."""
        option, federation = f"algorithm.{self.method_options.name}.min-count", self.federation
        if least and self.privacy.unit != "none":
            reason = "does not apply to runs with noise, which covers rare rows"
            raise ValueError(f"{option}={least} {reason}; set {option}=0")
        for key, value, exact in (
            ("federation.robust", self.robust, "none"),
            ("federation.encoding", federation.encoding, "float32"),
        ):
            if least and value != exact:
                raise ValueError(f"{option}={least} needs the exact number of clients with a row; set {key}={exact}")

    def _check_records(self) -> None:
        """Check that DP-SGD applies to the task, the method and the mechanism."""
        models = sorted(TASKS[self.task].record_dp)
        if (self.model if self.model in VARIANTS else "paper") not in models:
            remedy = f"model={models[0]} or privacy.unit=client" if models else "privacy.unit=client"
            raise ValueError(
                f"privacy.unit=record needs batches of separate records, which task '{self.task}' with"
                f" model={self.model} lacks; set {remedy}"
            )
        if self.privacy.accounting == "plan" and not self.planner.equal_costs:
            raise ValueError(
                f"privacy.accounting=plan needs rounds of equal costs, and {self.method} chooses them; set"
                " privacy.accounting=filter, or method=uniform"
            )
        if reason := self.capabilities.record_dp:
            method = self.method_options.name
            raise ValueError(f"{method} {reason}, which privacy.unit=record does not cover; set privacy.unit=client")
        if self.privacy.mechanism != "gaussian":
            raise ValueError(
                f"privacy.mechanism={self.privacy.mechanism} does not apply to privacy.unit=record; set"
                " privacy.mechanism=gaussian or privacy.unit=client"
            )


def chooses_model(config: "RunConfig") -> bool:
    """Return True if metrics on validation data choose the round whose model is delivered."""
    return config.federation.deliver == "best" and config.task_options.validation_share > 0


def keeps_rounds(config: "RunConfig") -> bool:
    """Return True if clients keep the layers that never leave them after each evaluation.

    They do under planners that learn from metrics. The model of any round can then be delivered.
    """
    capabilities = config.capabilities
    is_shared = capabilities.private_layers == "none" and capabilities.own_model == "none"
    return chooses_model(config) and config.planner.by_rewards and is_shared
