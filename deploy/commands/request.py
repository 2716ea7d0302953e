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
from deploy.commands.config_file import read_config_file
from deploy.commands.resume import option, resume_config
from deploy.commands.runs import runs_folder, stored_options
from server.artifacts import RunDirectory, make_run_id

WITHOUT_NOISE = ("privacy.unit", "privacy.trust")
"""Keys of `[privacy]` that have a meaning in runs without noise."""

STOP_ROUNDS = 20
"""Number of rounds without a gain after which a run of `fedloom up` ends."""


def resolve(
    request: RunRequest, decided: Mapping[str, Scalar | None], fallback: Mapping[str, Scalar] | None = None
) -> RunConfig:
    """Return the configuration of the run.

    Later sources win: defaults, the task's own, the file of `--config`, then `--set` and the other options.

    Args:
        request: Options of the command line.
        decided: Further keys set by the command; None leaves a key unset.
        fallback: Defaults of the command for a new run.

    Raises:
        ConfigError: An option is unknown, mistyped or contradicts another.
    """
    given = {key: value for key, value in {**_keys(request), **decided}.items() if value is not None}
    sets = read_overrides(request.sets or [])
    if request.resume:
        if request.config:
            raise ConfigError("--config does not apply to --resume; set the options that may change with --set")
        folder = RunDirectory(runs_folder(), request.resume)
        renamed = {"run-id": request.run_id} if request.run_id else {}
        return resume_config(folder, stored_options(folder), {**given, **renamed}, sets, request.round)
    if request.new_helpers:
        raise ConfigError("--new-helpers belongs to --resume")
    if request.round is not None:
        raise ConfigError("--round goes back in a run that is continued; add --resume RUN")
    file = _file_options(request)
    method = request.method or str(file.get("method", ""))
    task = request.task or str(file.get("task", "")) or _task_of(method)
    trust = {**file, **given, **sets}.get("privacy.trust")
    private = given.get("privacy.epsilon", file.get("privacy.epsilon", trust == "helpers" or None))
    defaults = {} if method else _task_defaults(task, private, trust)
    noise = _noise(request.method, given)
    config = parse(
        {"task": task, **(fallback or {}), **defaults, **_noise(method, file), **file, **noise, **given, **sets}
    )
    _require_noise(config, given, sets)
    config = config.model_copy(update={"run_id": request.run_id or make_run_id(config.method, config.task)})
    RunDirectory(runs_folder(), config.run_id).require_new()
    return config


def _file_options(request: RunRequest) -> dict[str, Scalar]:
    """Return the options of the file; those of another method are left out if the command names a method."""
    if request.config is None:
        return {}
    file = read_config_file(request.config)
    if request.method and file.get("method", request.method) != request.method:
        own = f"algorithm.{request.method}."
        return {key: value for key, value in file.items() if not key.startswith("algorithm.") or key.startswith(own)}
    return file


def _noise(method: str, options: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return the unit of noise for options that need noise."""
    plans = method in PLANNERS and PLANNERS[method].options.needs_noise
    return {"privacy.unit": "client"} if "privacy.epsilon" in options or plans else {}


def _keys(request: RunRequest) -> dict[str, Scalar | None]:
    """Return the options by their keys."""
    return {
        "method": request.method or None,
        "task": request.task or None,
        "rounds": request.rounds,
        "seed": request.seed,
        "privacy.epsilon": request.epsilon,
        "privacy.delta": request.delta,
        "federation.stop": request.patience,
        "federation.min-delta": request.min_delta,
        "privacy.trust": None if request.helpers is None else "helpers" if request.helpers else "local",
        "secure-sums.helpers": request.helpers or None,
        "secure-sums.renew": request.new_helpers or None,
    }


def stop_of_up(request: RunRequest) -> int | None:
    """Return the early stopping that `fedloom up` sets in new runs without noise; None for none."""
    sets = {key.replace("_", "-"): value for key, value in read_overrides(request.sets or []).items()}
    is_named = request.patience is not None or "federation.stop" in sets
    has_noise = request.epsilon is not None or sets.get("privacy.unit", "none") != "none"
    trains_on_all = any(key.endswith(".validation-share") and not value for key, value in sets.items())
    if request.resume or request.config or is_named or has_noise or trains_on_all or request.method in PLANNERS:
        return None
    return STOP_ROUNDS if resolve(request, {}).rounds > 1 else None


def _require_noise(config: RunConfig, given: Mapping[str, Scalar], sets: Mapping[str, Scalar]) -> None:
    """Raise ConfigError for options of noise in a run without noise."""
    if config.privacy.unit != "none":
        return
    named = [option(key) for key in given if key.startswith("privacy.") and key not in WITHOUT_NOISE]
    named += [f"--set {key}" for key in sets if key.startswith("privacy.") and key not in WITHOUT_NOISE]
    if named:
        raise ConfigError(f"{named[0]} needs --epsilon; this run adds no noise")


def _task_of(method: str) -> str:
    """Return the task that a method trains if no task is named."""
    if method in PLANNERS:
        return PLANNERS[method].default_task or FIRST_TASK
    return (METHODS[method].default_task if method in METHODS else "") or FIRST_TASK


def _task_defaults(task: str, private: object, trust: object) -> dict[str, Scalar]:
    """Return the task's default options, without counts in runs that noise or masks cover.

    A mechanism of clients' own noise is left out where helpers add the noise.
    """
    options = TASKS[task].defaults if task in TASKS else {}
    left_out = {"privacy.mechanism"} if trust == "helpers" else set()
    return {k: v for k, v in options.items() if (private is None or ".count-" not in k) and k not in left_out}
