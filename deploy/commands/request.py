"""Configuration of a run from the options of a command."""

from collections.abc import Mapping

from common.config.overrides import read_overrides
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import ConfigError
from common.methods.planners import PLANNERS
from common.methods.registry import METHODS
from common.options import Scalar
from common.tasks.registry import FIRST_TASK, TASKS
from deploy.cli.options import RunRequest
from deploy.commands.resume import option, resume_config
from deploy.commands.runs import runs_folder, stored_options
from server.artifacts import RunDirectory, make_run_id


def resolve(request: RunRequest, decided: Mapping[str, Scalar | None]) -> RunConfig:
    """Return the configuration of the run.

    Args:
        request: Options of the command line.
        decided: Further keys set by the command; None leaves a key unset.

    Raises:
        ConfigError: An option is unknown, mistyped or contradicts another.
    """
    given = {key: value for key, value in {**_keys(request), **decided}.items() if value is not None}
    sets = read_overrides(request.sets or [])
    if request.resume:
        folder = RunDirectory(runs_folder(), request.resume)
        renamed = {"run-id": request.run_id} if request.run_id else {}
        return resume_config(folder, stored_options(folder), {**given, **renamed}, sets)
    task = request.task or _task_of(request.method)
    defaults = {} if request.method else _task_defaults(task, private=given.get("privacy.epsilon"))
    plans = request.method in PLANNERS and PLANNERS[request.method].options.needs_noise
    noise: dict[str, Scalar] = {"privacy.unit": "client"} if "privacy.epsilon" in given or plans else {}
    config = parse({"task": task, **defaults, **noise, **given, **sets})
    _require_noise(config, given, sets)
    config = config.model_copy(update={"run_id": request.run_id or make_run_id(config.method, config.task)})
    RunDirectory(runs_folder(), config.run_id).require_new()
    return config


def _keys(request: RunRequest) -> dict[str, Scalar | None]:
    """Return the options by their keys."""
    return {
        "method": request.method or None,
        "task": request.task or None,
        "rounds": request.rounds,
        "seed": request.seed,
        "privacy.epsilon": request.epsilon,
        "privacy.delta": request.delta,
    }


def _require_noise(config: RunConfig, given: Mapping[str, Scalar], sets: Mapping[str, Scalar]) -> None:
    """Raise ConfigError for options of noise in a run without noise."""
    if config.privacy.unit != "none":
        return
    named = [option(key) for key in given if key.startswith("privacy.")]
    named += [f"--set {key}" for key in sets if key.startswith("privacy.") and key != "privacy.unit"]
    if named:
        raise ConfigError(f"{named[0]} needs --epsilon; this run adds no noise")


def _task_of(method: str) -> str:
    """Return the task that a method trains if no task is named."""
    if method in PLANNERS:
        return PLANNERS[method].default_task or FIRST_TASK
    return (METHODS[method].default_task if method in METHODS else "") or FIRST_TASK


def _task_defaults(task: str, private: object) -> dict[str, Scalar]:
    """Return the task's default options; summed counts are left out in runs with noise on all uploads."""
    options = TASKS[task].defaults if task in TASKS else {}
    return {key: value for key, value in options.items() if private is None or ".count-" not in key}
