"""Configuration of a run from options, from a TOML file, or from a resumed run."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from client.data.dataset import is_demo
from client.data.schemes import Scheme, scheme_of
from common.config.keys import SHARED, current_key, overlay, update_keys
from common.config.parse import flatten, option_keys, parse, read_overrides
from common.config.run import RunConfig
from common.errors import ConfigError
from common.methods.planners import PLANNERS
from common.methods.registry import METHODS
from common.options import Scalar, kebab, leaves
from common.tasks.networks import NETWORKS
from common.tasks.options import VARIANTS
from common.tasks.registry import FIRST_TASK, TASKS, read_vocabulary
from common.tasks.vocabulary import FEDERATED, Vocabulary
from common.text import count, hint
from deploy.cli.options import RunRequest
from deploy.data.sources import read_catalogue
from deploy.federation.runs import Origin, find_run, origin_of, runs_folder, stored_options
from deploy.files import read_file
from server.record.events import ENDED_EARLY
from server.record.folder import LOCK_SECONDS, RunDirectory, go_back, make_run_id

OF_ONE_RUN = ("run-id", "resume")
"""Keys of a stored run that another run does not repeat."""

OF_SIMULATIONS = ("federation.min-clients", "federation.wait")
"""Keys that `fedloom simulate` sets itself; a federation of processes does not repeat them."""

SECTION = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(#.*)?")
ASSIGNMENT = re.compile(r"\s*([^=#\[]+?)\s*=")


def read_config_file(path: Path) -> dict[str, Scalar]:
    """Return the options of a file by dotted key; sections and dotted keys may be mixed.

    Raises:
        ConfigError: The file cannot be read or is no TOML, or an option is unknown, removed or mistyped; names file and line.
    """
    try:
        text = read_file(path).decode("utf-8-sig")
        tree = tomllib.loads(text)
    except ValueError as error:
        raise ConfigError(
            f"{path}: not a TOML file ({error}); write KEY = VALUE lines, as in runs/ID/config.toml"
        ) from None
    try:
        options = update_keys({key.replace("_", "-"): value for key, value in leaves(tree, "")})
    except ConfigError as error:
        _refuse(path, text, re.split("[ =]", str(error), maxsplit=1)[0], str(error))
    existing = option_keys()
    for key, value in options.items():
        if current_key(key) not in existing:
            _refuse(path, text, key, f"unknown option '{key}'{hint(key, existing)}")
        if not isinstance(value, bool | int | float | str):
            _refuse(path, text, key, f"'{key}' has a value that is no option; write true, a number or a text")
    _check_values(path, text, options)
    origin = origin_of(path.parent) if "run-id" in options else None
    dropped = (*OF_ONE_RUN, *(OF_SIMULATIONS if origin and origin.command == "simulate" else ()))
    return {key: value for key, value in options.items() if key not in dropped}


def repeat_partition(path: Path | None, command: str, data: str, clients: int | None) -> tuple[str, int | None]:
    """Return data and clients of a run to repeat; what the command names is kept.

    The command names no data if they are `demo`, and no number of clients if it is None.

    Raises:
        ConfigError: The run was trained on own data, and the command names none.
    """
    origin = origin_of(path.parent) if path else None
    if not isinstance(origin, Origin) or path is None or data != UNNAMED or origin.command not in ("up", "simulate"):
        return data, clients
    if not is_demo(origin.data):
        run = path.resolve().parent.name
        raise ConfigError(f"run '{run}' was trained on own data, whose path is not stored; name them with --data")
    return origin.data, origin.clients if clients is None and origin.command == command else clients


def _check_values(path: Path, text: str, options: Mapping[str, Scalar]) -> None:
    """Raise ConfigError for a value out of range; contradicting options are found with the whole run."""
    try:
        parse(options)
    except ConfigError as error:
        wrong = next((key for key in options if f"'{current_key(key)}': " in str(error)), "")
        if wrong:
            _refuse(path, text, wrong, str(error))


def _refuse(path: Path, text: str, key: str, fault: str) -> NoReturn:
    line = _find_line(text, key)
    raise ConfigError(f"{path}, line {line}: {fault}" if line else f"{path}: {fault}")


def _find_line(text: str, key: str) -> int:
    """Return the one-based line that sets a key; 0 if it is not found."""
    section = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if match := SECTION.fullmatch(line):
            section = f"{match[1]}."
        elif match := ASSIGNMENT.match(line):
            name = re.sub(r"[\s\"']", "", section + match[1]).replace("_", "-")
            if key == name or key.startswith(f"{name}."):
                return number
    return 0


OF_METHODS = ("algorithm.", "training.", "planner.")
"""Sections of methods and planners."""

FREE = (
    *("rounds", "evaluate-every", "federation.", *OF_METHODS),
    *("secure-sums.wait", "secure-sums.deadline", "secure-sums.renew"),
)
"""Keys that a resumed run may change: length, deadlines and steps; other keys make it another run."""

LASTING = (".clusters", ".inner")
"""Options of a method on which its stored state depends."""

STOPPING = (".stop", ".patience", ".min-gain")
"""Options of a planner for early stopping."""

UNNAMED = "demo"
"""Default of `--data`."""

OPTIONS = {
    "privacy.epsilon": "--epsilon",
    "privacy.delta": "--delta",
    "privacy.trust": "--helpers",
    "secure-sums.helpers": "--helpers",
}
"""Key -> command-line option, where their names differ."""


def resume_config(
    folder: RunDirectory,
    stored: Mapping[str, Scalar],
    given: Mapping[str, Scalar],
    sets: Mapping[str, Scalar],
    start: int | None = None,
) -> RunConfig:
    """Return a stored run's configuration with the options that may change.

    `given` are options of the command by key, `sets` those of `--set`, and `start` is a round to go back to.

    Raises:
        ConfigError: An option would make it another run, or no round is left to do.
    """
    run, run_options = folder.path.name, flatten(parse(stored))
    sets = {key.replace("_", "-"): value for key, value in sets.items()}
    for options, by_set in ((given, False), (sets, True)):
        for given_key, key in [(key, current_key(key)) for key in options]:
            if key in run_options and not _may_change(key, run_options):
                _require_own(run, run_options, key, options[given_key], f"--set {given_key}" if by_set else option(key))
    config = parse({**overlay(run_options, given, sets), "resume": True, "run-id": run})
    if start is not None and config.privacy.trust == "helpers":
        raise ConfigError("--round does not apply to secure sums: helpers open the sum of a round once")
    if start is not None:
        with folder.lock(wait=LOCK_SECONDS):
            go_back(folder, start)
    _require_unfinished(folder, config)
    return config


def _require_unfinished(folder: RunDirectory, config: RunConfig) -> None:
    run = folder.path.name
    with folder.lock(wait=LOCK_SECONDS):  # processes of a killed command end within a second
        result = folder.result()
    if result is None:
        return
    if result.rounds_done >= config.rounds:
        if config.planner.fixed_rounds:
            raise ConfigError(f"run '{run}' has done all rounds of its planned budget; start a new run")
        done = "its one round" if result.rounds_done == 1 else f"all its {result.rounds_done} rounds"
        raise ConfigError(f"run '{run}' has done {done}; set more with --rounds")
    if result.reason.startswith(ENDED_EARLY):
        raise ConfigError(f"run '{run}' {result.reason}, and its clients answer no further round; start a new run")


def run_vocabulary(folder: RunDirectory, task: str, given: Vocabulary | None) -> Vocabulary:
    """Return the vocabulary of a resumed run.

    Raises:
        ConfigError: The command names another vocabulary.
    """
    vocabulary = read_vocabulary(task, folder.catalogue())
    if given is not None and given != vocabulary:
        raise refusal(folder.path.name, "--catalogue", "its own vocabulary")
    return vocabulary


def name_vocabulary(config: RunConfig, catalogue: Path | None) -> tuple[RunConfig, Path | None]:
    """Return the run and its vocabulary file; for `--catalogue federated` there is no file.

    Raises:
        ConfigError: The clients of such a run cannot find one, or the run is resumed and has its own.
    """
    if catalogue is None or str(catalogue) != FEDERATED:
        if catalogue and config.catalogue == FEDERATED and not config.resume:  # of --config or --set
            config = config.model_copy(update={"catalogue": str(catalogue.resolve())})
        return config, catalogue
    if config.resume and config.catalogue != FEDERATED:
        raise refusal(config.run_id, "--catalogue", "its own vocabulary")
    return parse({**flatten(config), "catalogue": FEDERATED}), None


def with_catalogue(config: RunConfig, catalogue: Path | None) -> RunConfig:
    """Return the run of a server without data, with the vocabulary in the file.

    Raises:
        ConfigError: The run is resumed and has another vocabulary.
        DataError: The file is missing or holds no vocabulary.
    """
    config, catalogue = name_vocabulary(config, catalogue)
    given = read_catalogue(config.task, catalogue)
    if config.resume and (given or config.catalogue != FEDERATED):
        run_vocabulary(RunDirectory(runs_folder(), config.run_id), config.task, given)
    elif config.start_from and config.catalogue != FEDERATED:
        if given is not None:
            extended_vocabulary(config, given)
        catalogue = catalogue or find_parent(config.start_from).path / "catalogue.json"
    return config.model_copy(update={"catalogue": str(catalogue.resolve())}) if catalogue else config


def run_partition(folder: RunDirectory, data: str, clients: int | None) -> tuple[str, int | None]:
    """Return the data of a resumed simulation, and the number of clients among which they are partitioned.

    The command names no data if they are `demo`, and no number of clients if it is None.

    Raises:
        ConfigError: The run has other clients or other data.
    """
    run, origin = folder.path.name, origin_of(folder.path)
    if origin is None:
        return data, clients
    if origin.command != "simulate":
        raise ConfigError(f"run '{run}' was started by fedloom {origin.command}; resume it with that command")
    if clients not in (None, origin.clients):
        raise refusal(run, "--clients", f"its own --clients {origin.clients}")
    if origin.data and data not in (UNNAMED, origin.data):
        raise refusal(run, "--data", f"its own {origin.data}")
    if not origin.data and is_demo(data):
        raise ConfigError(f"run '{run}' continues with its own data, whose path is not stored; name them with --data")
    return origin.data or data, origin.clients


def stored_scheme(folder: RunDirectory, named: Scheme | None) -> Scheme | None:
    """Return the scheme by which the data of a resumed simulation are partitioned.

    Raises:
        ConfigError: The command names another one.
    """
    origin = origin_of(folder.path)
    scheme = origin.scheme if origin else ""
    if named and str(named) != scheme:
        raise refusal(folder.path.name, f"--partition {named}", f"its own partition {scheme}".rstrip())
    return scheme_of(scheme)


def option(key: str) -> str:
    """Return the option of the command line that sets a key."""
    return OPTIONS.get(key, f"--{key}")


def refusal(run: str, name: str, run_value: str) -> ConfigError:
    """Return the error about an option that a resumed run cannot change."""
    return ConfigError(f"run '{run}' continues with {run_value}; remove {name}, or start a new run without --resume")


def _may_change(key: str, options: Mapping[str, Scalar]) -> bool:
    """Return True if a resumed run may change the key.

    Under DP-SGD the cost of a round depends on its steps.
    """
    method = str(options["method"])
    fixed = method in PLANNERS and PLANNERS[method].options.fixed_rounds
    planned = fixed and (key == "rounds" or key.startswith((f"algorithm.{method}.", "planner.")))
    lasting = (*LASTING, ".local-steps") if options["privacy.unit"] == "record" else LASTING
    settled = key.startswith(OF_METHODS) and key.endswith(lasting)
    return key.startswith(FREE) and not settled and (not planned or key.endswith(STOPPING))


def _require_own(run: str, options: Mapping[str, Scalar], key: str, value: Scalar, name: str) -> None:
    if options["privacy.unit"] == "none" and key.startswith("privacy.") and key not in WITHOUT_NOISE:
        raise refusal(run, name, "no noise")
    if options[key] != value:
        raise refusal(run, name, f"its own {key}={options[key]}")


WITHOUT_NOISE = ("privacy.unit", "privacy.trust")
"""Keys of `[privacy]` that have a meaning in runs without noise."""

PAPER = ("model", "paper")
"""Choice of a network's variant."""

STOP_ROUNDS = 20
"""Number of rounds without a gain after which a run of `fedloom up` ends."""


def resolve(
    request: RunRequest,
    decided: Mapping[str, Scalar | None],
    fallback: Mapping[str, Scalar] | None = None,
    *,
    helpers: bool = False,
) -> RunConfig:
    """Return the configuration of the run.

    Later sources win: defaults, the task's own, the file of `--config`, then `--set` and the other options.

    Args:
        request: Options of the command line.
        decided: Further keys set by the command; None leaves a key unset.
        fallback: Defaults of the command for a new run.
        helpers: True if the command starts helpers for the sums of a closed form, unless an option sets `privacy.trust`.

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
    named = str(sets.get("method", request.method))
    path = request.config or (find_parent(request.start_from).path / "config.toml" if request.start_from else None)
    file = _suited(read_config_file(path), named) if path else {}
    request, of_model = _with_model(request, {**file, **sets})
    given |= {key: value for key, value in _keys(request).items() if value is not None and key not in decided}
    if request.start_from:
        file["catalogue"] = "demo"  # names of the parent are not those of a file
    method = request.method or str(file.get("method", ""))
    task = request.task or str(file.get("task", "")) or _task_of(method)
    chosen = overlay(_noise(method, file), file, _noise(request.method, given), given, sets)
    defaults = of_model or _defaults(task, chosen, helpers)
    config = parse(overlay({"task": task, **(fallback or {})}, defaults, chosen))
    _require_noise(config, given, sets)
    config = config.model_copy(update={"run_id": request.run_id or make_run_id(config.method, config.task)})
    RunDirectory(runs_folder(), config.run_id).require_new()
    return _with_parent(config) if config.start_from else config


def find_parent(name: str) -> RunDirectory:
    """Return the run of this name or folder, from which another one starts.

    Raises:
        ConfigError: It does not exist, or the server would not find it.
    """
    folder, root = find_run(name), runs_folder()
    if folder.path.parent != root:
        raise ConfigError(f"run '{name}' is not in the server's folder of runs {root}; copy it there")
    return folder


def _with_parent(config: RunConfig) -> RunConfig:
    """Return the configuration with the name of the run from which it starts.

    Raises:
        ConfigError: The run cannot start from that one.
    """
    from server.parent import ParentRun  # imports Flower

    parent = ParentRun.find(find_parent(config.start_from), config)
    return config.model_copy(update={"start_from": parent.folder.path.name})


def extended_vocabulary(config: RunConfig, given: Vocabulary) -> Vocabulary:
    """Return the vocabulary of the run from which this one starts, with further names.

    Raises:
        ConfigError: Both differ in more than names.
    """
    from server.parent import ParentRun  # imports Flower

    return ParentRun.find(find_parent(config.start_from), config).extend(given)


def _with_model(request: RunRequest, others: Mapping[str, Scalar]) -> tuple[RunRequest, dict[str, Scalar]]:
    """Return the request with task and method of its model, and the paper's options.

    `others` may name task and method. Beside another method, the paper's are those of its network alone.
    """
    if request.model in ("", VARIANTS[0]):
        return request, {}
    method = request.method or str(others.get("method", ""))
    of_package = NETWORKS[request.model].task if request.model in NETWORKS else ""
    task = request.task or str(others.get("task", "")) or of_package or _task_of(method)
    if task not in TASKS:
        return request, {}
    spec, is_paper = TASKS[task], request.model == PAPER[1]
    options = dict(spec.paper) if is_paper else {}
    default = str((options or spec.trained).get("method", ""))
    if method and method != default:
        options = {key: value for key, value in options.items() if key.startswith("tasks.")}
    return replace(request, task=task, method=request.method or ("" if method else default)), options


def _suited(options: Mapping[str, Scalar], method: str) -> dict[str, Scalar]:
    """Return options of a source; those of its own method are left out if the command names another one."""
    if not method or options.get("method", method) == method:
        return dict(options)
    section = f"algorithm.{method}."
    return {key: value for key, value in options.items() if not key.startswith(OF_METHODS) or key.startswith(section)}


def _noise(method: str, options: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return the unit of noise for options that need noise."""
    plans = method in PLANNERS and PLANNERS[method].options.needs_noise
    return {"privacy.unit": "client"} if "privacy.epsilon" in options or plans else {}


def _keys(request: RunRequest) -> dict[str, Scalar | None]:
    """Return the options by their keys."""
    return {
        "method": request.method or None,
        "task": request.task or None,
        "model": request.model or None,
        "rounds": request.rounds,
        "seed": request.seed,
        "start-from": request.start_from or None,
        "half-life": request.half_life,
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
    is_settled = request.resume or request.config or request.start_from or request.method in PLANNERS
    if is_settled or is_named or has_noise or trains_on_all:
        return None
    config = resolve(request, {}, helpers=True)
    is_long = config.rounds > 1 and not config.capabilities.closed_form
    return STOP_ROUNDS if is_long and config.privacy.unit == "none" else None


def without_effect(request: RunRequest, config: RunConfig) -> list[str]:
    """Return a line about a number of rounds that a closed form does not take."""
    if not config.capabilities.closed_form or request.rounds in (None, config.rounds):
        return []
    rounds = count(config.rounds, "round")
    return [f"{config.method} takes {rounds}, one for each sum; --rounds {request.rounds} has no effect"]


def owners_must_allow(config: RunConfig) -> list[str]:
    """Return lines on what the policies of clients elsewhere must allow for this run."""
    need = {"helpers": '"summed"', "local": '"clear"'}.get(config.privacy.trust, '"summed" with helpers, else "clear"')
    names = f"owners must allow names in their data: allow-names = {need} in each policy"
    lines = [names] * (config.catalogue == FEDERATED)
    if config.has_closed_form and config.privacy.unit == "none":
        network = TASKS[config.task].network.get("method")
        instead = f"; --method {network} trains without them" if network else ""
        lines.append(f"owners must allow statistics of their data: allow-counts = {need} in each policy{instead}")
    return lines


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


def _defaults(task: str, chosen: Mapping[str, Scalar], helpers: bool) -> dict[str, Scalar]:
    """Return the task's options for a run with these chosen options.

    The default may be a closed form. A network trains where its method is named, and where each client draws its own noise.
    Networks have no counts in runs that noise or masks cover, and no mechanism of clients' own noise where helpers add it.

    Raises:
        ConfigError: An option of training is chosen, and the default of the task trains nothing.
    """
    if task not in TASKS:
        return {}
    spec, unit, trust = TASKS[task], chosen.get("privacy.unit", "none"), chosen.get("privacy.trust")
    if trust is None and helpers and unit != "record" and chosen.get("privacy.mechanism", "gaussian") == "gaussian":
        trust = "helpers"
    options = spec.defaults if unit == "none" or (unit == "client" and trust == "helpers") else spec.trained
    if chosen.get("first"):
        options = spec.trained
    if "method" in chosen:
        options = spec.trained if chosen["method"] == spec.trained.get("method") else {}
    method = str(chosen.get("method", options.get("method")))
    if method in METHODS and METHODS[method].options().capabilities().closed_form:
        if "method" not in chosen:
            _require_no_training(task, chosen)
        return {**options, **({"privacy.trust": "helpers"} if trust == "helpers" else {})}
    is_covered, is_summed = unit != "none", chosen.get("privacy.trust") == "helpers"
    left_out = {"privacy.mechanism"} if is_summed else set()
    return {
        k: v for k, v in options.items() if k not in left_out and not (".count-" in k and (is_covered or is_summed))
    }


def _require_no_training(task: str, chosen: Mapping[str, Scalar]) -> None:
    """Raise ConfigError for an option without effect on the task's closed form."""
    shared = {f"{section}.{name}" for section, names in SHARED.items() for name in names}
    training = [key for key in chosen if kebab(key) in shared or (key, chosen[key]) == PAPER]
    if training:
        spec = TASKS[task]
        raise ConfigError(
            f"{training[0]} needs a method that trains, and the default of task '{task}' is the closed form"
            f" {spec.defaults['method']}; add --method {spec.trained['method']}"
        )
