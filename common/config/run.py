"""Configuration of a run."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, SerializeAsAny, ValidationInfo, field_validator, model_validator

from common.config import gathered_rows, sections
from common.config.federation import Federation
from common.config.secure_sums import SecureSumsOptions, check_count_noise, find_obstacle
from common.config.validation_split import add_validation_share, check_validation_share
from common.errors import ConfigError
from common.methods.planners import PlannerOptions, Uniform
from common.methods.registry import FIRST_METHOD, METHODS, method_names
from common.methods.spec import Capabilities, MethodOptions
from common.options import Options
from common.privacy.options import PrivacyOptions
from common.tasks.registry import FIRST_TASK, TASKS
from common.tasks.spec import OptionsT, TaskOptions, TaskRun, TaskSpec, VocabularyT
from common.text import hint


class RunConfig(Options):
    """Configuration of a run: one training of one method on one task."""

    run_id: str = ""
    """Name of the run's folder; if empty, date, method and task form the name."""

    method: str = FIRST_METHOD
    """Name of the training method, or of a planner around a training method."""

    task: str = FIRST_TASK
    """Name of the learning task."""

    model: Literal["default", "paper"] = "default"
    """Model variant: `default` is the most accurate model here; `paper` is the model of the task's paper."""

    rounds: int = Field(30, ge=1)
    """Number of training rounds."""

    seed: int = Field(0, ge=0, lt=2**63)
    """Seed of every random choice except DP noise."""

    evaluate_every: int = Field(1, ge=1)
    """Number of rounds from one evaluation to the next; the last round is always evaluated."""

    catalogue: str = "demo"
    """Public vocabulary of the task: `demo` or the path of a JSON file on the server."""

    resume: bool = False
    """Resume the run named `run-id` from its newest checkpoint."""

    federation: Federation = Federation()
    privacy: PrivacyOptions = PrivacyOptions()
    secure_sums: SecureSumsOptions = SecureSumsOptions()
    method_options: SerializeAsAny[MethodOptions] = Field({}, validation_alias="algorithm", validate_default=True)
    """Options of the training method; for a planner, of its inner method."""

    planner_options: SerializeAsAny[PlannerOptions] | None = Field(
        {}, validation_alias="algorithm", validate_default=True
    )
    """Options of the planner; None if `method` is a training method."""

    task_options: SerializeAsAny[TaskOptions] = Field({}, validation_alias="tasks", validate_default=True)
    """Options of the learning task."""

    @property
    def planner(self) -> PlannerOptions:
        """Options of the planner; without a planner, those of the even split `uniform`."""
        return self.planner_options or Uniform()

    @property
    def needs_planner(self) -> bool:
        """True if noise is on or the method is a planner."""
        return self.privacy.unit != "none" or self.planner_options is not None

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities of the training method."""
        return self.method_options.capabilities()

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
        return TaskRun(options, vocabulary, self.model, self.method_options, self.privacy, self.rounds, self.seed)

    @field_validator("method")
    @classmethod
    def _check_method(cls, name: str) -> str:
        if name not in method_names():
            closest = hint(name, method_names()) or ";"
            raise ValueError(f"unknown method '{name}'{closest} installed: {', '.join(method_names())}")
        return name

    @field_validator("task")
    @classmethod
    def _check_task(cls, name: str) -> str:
        if name not in TASKS:
            raise ValueError(TASKS.describe_unknown(name))
        return name

    @field_validator("method_options", mode="before")
    @classmethod
    def _choose_method(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, MethodOptions):
            return value
        if "method" not in info.data:  # an unknown name is reported once
            return METHODS[FIRST_METHOD].options()
        return sections.read_method_options(value, info.data["method"])

    @field_validator("planner_options", mode="before")
    @classmethod
    def _choose_planner(cls, value: Any, info: ValidationInfo) -> Any:
        if value is None or isinstance(value, PlannerOptions):
            return value
        if "method" not in info.data:
            return None
        return sections.read_planner_options(value, info.data["method"])

    @field_validator("task_options", mode="before")
    @classmethod
    def _choose_task(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, TaskOptions):
            return value
        if "task" not in info.data:  # an unknown name is reported once
            return TASKS[FIRST_TASK].options()
        return sections.read_task_options(value, info.data["task"])

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, value: Any) -> Any:
        """Add a validation split for a planner that needs rewards."""
        return add_validation_share(value) if isinstance(value, Mapping) else value

    @model_validator(mode="after")
    def _check_noise(self) -> Self:
        unit, planner = self.privacy.unit, self.planner_options
        if planner and not planner.needs_noise and unit != "none":
            raise ValueError(f"{self.method} adds no noise; remove privacy.unit={unit} or choose another planner")
        if planner and planner.needs_noise and unit == "none":
            raise ValueError(f"{self.method} plans a privacy budget; set privacy.unit=client or privacy.unit=record")
        if unit == "record":
            self._check_records()
        check_count_noise(self)
        check_validation_share(planner, self.federation.stop, self.task, self.task_options.validation_share)
        if planner and planner.by_rewards and self.evaluate_every != 1:
            raise ValueError(f"{self.method} needs the reward of every round; set evaluate-every=1")
        return self

    @model_validator(mode="after")
    def _check_method_and_task(self) -> Self:
        capabilities, method = self.capabilities, self.method_options.name
        if capabilities.tasks and self.task not in capabilities.tasks:
            suited = " or ".join(f"task={task}" for task in sorted(capabilities.tasks))
            raise ValueError(f"{method} {capabilities.tasks_reason}, which task '{self.task}' lacks; set {suited}")
        if capabilities.plaintext and self.privacy.unit != "none":
            keys = ", ".join(sorted(capabilities.plaintext))
            raise ValueError(
                f"{method} sends data in plaintext ({keys}), which noise does not cover; remove privacy.unit"
            )
        gathered_rows.check_rows(self)
        self.method_options.check(self.task_options, self.model)
        self.task_options.check(self.model, method, capabilities)
        if self.privacy.trust == "helpers" and (obstacle := find_obstacle(self)):
            raise ValueError(f"{obstacle}; set privacy.trust=local")
        return self

    def _check_records(self) -> None:
        """Check that DP-SGD applies to the task, the method and the mechanism."""
        models = sorted(TASKS[self.task].record_dp)
        if self.model not in models:
            remedy = f"model={models[0]} or privacy.unit=client" if models else "privacy.unit=client"
            raise ValueError(
                f"privacy.unit=record needs batches of separate records, which task '{self.task}' with"
                f" model={self.model} lacks; set {remedy}"
            )
        if reason := self.capabilities.record_dp:
            method = self.method_options.name
            raise ValueError(f"{method} {reason}, which privacy.unit=record does not cover; set privacy.unit=client")
        if self.privacy.mechanism != "gaussian":
            raise ValueError(
                f"privacy.mechanism={self.privacy.mechanism} does not apply to privacy.unit=record; set"
                " privacy.mechanism=gaussian or privacy.unit=client"
            )
