"""Configuration of a run."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, SerializeAsAny, ValidationInfo, field_validator, model_validator

from common.config import sections
from common.config.federation import Federation
from common.config.validation_split import check_share, with_share
from common.errors import ConfigError
from common.methods.planners import PlannerOptions, Uniform
from common.methods.registry import FIRST_METHOD, METHODS, method_names
from common.methods.spec import Capabilities, MethodOptions
from common.options import Options, meant
from common.privacy.options import PrivacyOptions
from common.tasks.registry import FIRST_TASK, TASKS
from common.tasks.spec import OptionsT, TaskOptions, TaskRun, TaskSpec, VocabularyT


class RunConfig(Options):
    """One training of one method on one task."""

    run_id: str = ""
    """Name of the run's folder; empty makes one from date, method and task."""

    method: str = FIRST_METHOD
    """Training method, or a planner that trains by another one."""

    task: str = FIRST_TASK
    """Learning task."""

    model: Literal["default", "paper"] = "default"
    """`paper`: the paper's own model; `default`: the best known one under the same federation."""

    rounds: int = Field(30, ge=1)
    """Rounds of training."""

    seed: int = Field(0, ge=0, lt=2**63)
    """Seed of every random choice but DP noise."""

    evaluate_every: int = Field(1, ge=1)
    """Rounds between two evaluations of the global model by the clients; the last round is always evaluated."""

    catalogue: str = "demo"
    """Public vocabulary of the task: `demo`, or the path of a JSON file on the server."""

    resume: bool = False
    """Continue the run named `run-id` from its newest checkpoint."""

    federation: Federation = Federation()
    privacy: PrivacyOptions = PrivacyOptions()

    method_options: SerializeAsAny[MethodOptions] = Field({}, validation_alias="algorithm", validate_default=True)
    """Options of the method that trains: `method`, or the inner method of a planner."""

    planner_options: SerializeAsAny[PlannerOptions] | None = Field(
        {}, validation_alias="algorithm", validate_default=True
    )
    """Options of the planner; None if `method` is none."""

    task_options: SerializeAsAny[TaskOptions] = Field({}, validation_alias="tasks", validate_default=True)
    """Options of the task."""

    @property
    def planner(self) -> PlannerOptions:
        """Planner of the privacy budget; an even split unless the method is a planner."""
        return self.planner_options or Uniform()

    @property
    def planned(self) -> bool:
        """True if a planner is needed: noise is on or the method is a planner."""
        return self.privacy.unit != "none" or self.planner_options is not None

    @property
    def capabilities(self) -> Capabilities:
        """Needs and limits of the method that trains."""
        return self.method_options.capabilities()

    def options_of(self, spec: TaskSpec[OptionsT, VocabularyT]) -> OptionsT:
        """Return the task's options with their own type.

        Raises:
            ConfigError: The run is of another task.
        """
        if not isinstance(self.task_options, spec.options):
            raise ConfigError(f"the run is of task '{self.task}', not of '{spec.name}'")
        return self.task_options

    def task_run(
        self, spec: TaskSpec[OptionsT, VocabularyT], vocabulary: VocabularyT
    ) -> TaskRun[OptionsT, VocabularyT]:
        """Return the run as its task sees it.

        Raises:
            ConfigError: The run is of another task.
        """
        options = self.options_of(spec)
        return TaskRun(options, vocabulary, self.model, self.method_options, self.privacy, self.rounds, self.seed)

    @field_validator("method")
    @classmethod
    def _method_is_installed(cls, name: str) -> str:
        if name not in method_names():
            raise ValueError(f"unknown method '{name}'{meant(name, method_names())}")
        return name

    @field_validator("task")
    @classmethod
    def _task_is_installed(cls, name: str) -> str:
        if name not in TASKS:
            raise ValueError(TASKS.unknown(name))
        return name

    @field_validator("method_options", mode="before")
    @classmethod
    def _choose_method(cls, given: Any, info: ValidationInfo) -> Any:
        if isinstance(given, MethodOptions):
            return given
        if "method" not in info.data:  # an unknown name is reported once
            return METHODS[FIRST_METHOD].options()
        return sections.method_options(given, info.data["method"])

    @field_validator("planner_options", mode="before")
    @classmethod
    def _choose_planner(cls, given: Any, info: ValidationInfo) -> Any:
        if given is None or isinstance(given, PlannerOptions):
            return given
        if "method" not in info.data:
            return None
        return sections.planner_options(given, info.data["method"])

    @field_validator("task_options", mode="before")
    @classmethod
    def _choose_task(cls, given: Any, info: ValidationInfo) -> Any:
        if isinstance(given, TaskOptions):
            return given
        if "task" not in info.data:  # an unknown name is reported once
            return TASKS[FIRST_TASK].options()
        return sections.task_options(given, info.data["task"])

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, given: Any) -> Any:
        """Hold data out for a planner that needs rewards."""
        return with_share(given) if isinstance(given, Mapping) else given

    @model_validator(mode="after")
    def _noise_fits(self) -> Self:
        unit, planner = self.privacy.unit, self.planner_options
        if planner and not planner.needs_noise and unit != "none":
            raise ValueError(f"{self.method} adds no noise; leave privacy.unit={unit} out, or choose another planner")
        if planner and planner.needs_noise and unit == "none":
            raise ValueError(f"{self.method} plans a privacy budget; set privacy.unit=client or privacy.unit=record")
        if unit == "record":
            self._check_records()
        if planner and planner.by_rewards:
            check_share(self.method, self.task, self.task_options.validation_share)
        if planner and planner.by_rewards and self.evaluate_every != 1:
            raise ValueError(f"{self.method} goes by what each round gains; leave evaluate-every at 1")
        return self

    @model_validator(mode="after")
    def _method_fits_the_task(self) -> Self:
        capabilities, method = self.capabilities, self.method_options.name
        if capabilities.tasks and self.task not in capabilities.tasks:
            suited = " or ".join(f"task={task}" for task in sorted(capabilities.tasks))
            raise ValueError(f"{method} {capabilities.tasks_reason}; task '{self.task}' has none, set {suited}")
        if capabilities.plaintext and self.privacy.unit != "none":
            keys = ", ".join(sorted(capabilities.plaintext))
            raise ValueError(f"{method} sends data in plaintext ({keys}), which noise does not cover; leave noise out")
        self.method_options.check(self.task_options, self.model)
        self.task_options.check(self.model, method, capabilities)
        return self

    def _check_records(self) -> None:
        """Accept DP-SGD for the task, the method and the mechanism."""
        if self.model not in TASKS[self.task].record_dp:
            raise ValueError(
                f"privacy.unit=record needs batches of separate records, which task '{self.task}' with"
                f" model={self.model} has not; set {self._records_remedy()}"
            )
        if reason := self.capabilities.record_dp:
            method = self.method_options.name
            raise ValueError(f"{method} {reason}, which privacy.unit=record does not cover; set privacy.unit=client")
        if self.privacy.mechanism != "gaussian":
            raise ValueError(f"DP-SGD adds Gaussian noise; mechanism={self.privacy.mechanism} is for unit=client")

    def _records_remedy(self) -> str:
        """Return the model that separates records, if there is one, or the other unit."""
        models = sorted(TASKS[self.task].record_dp)
        return f"model={models[0]} or privacy.unit=client" if models else "privacy.unit=client"
