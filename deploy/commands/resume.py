"""`--resume`: continue a stored run as the same run, for more rounds if asked."""

from collections.abc import Mapping

from client.data.sources import is_demo
from common.config.flatten import flatten
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import ConfigError
from common.methods.planners import PLANNERS
from common.options import Scalar
from common.tasks.registry import read_vocabulary
from common.tasks.vocabulary import Vocabulary
from deploy.report.launch_record import origin_of
from server.artifacts import LOCK_SECONDS, RunDirectory
from server.events import ENDED_EARLY
from server.rewind import go_back

FREE = (
    *("rounds", "evaluate-every", "federation.", "algorithm."),
    *("secure-sums.wait", "secure-sums.deadline", "secure-sums.renew"),
)
"""Keys that a resumed run may change: length, deadlines and steps; other keys make it another run."""

LASTING = (".clusters", ".cluster-data", ".inner")
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

    Args:
        folder: Folder of the run.
        stored: Stored configuration.
        given: Options of the command by key.
        sets: Options of `--set`.
        start: Round to go back to; None for the newest.

    Raises:
        ConfigError: An option would make it another run, or no round is left to do.
    """
    run, own = folder.path.name, flatten(parse(stored))
    sets = {key.replace("_", "-"): value for key, value in sets.items()}
    for options, by_set in ((given, False), (sets, True)):
        for key in [key for key in options if key in own and not _may_change(key, own)]:
            _require_own(run, own, key, options[key], f"--set {key}" if by_set else option(key))
    config = parse({**own, **given, **sets, "resume": True, "run-id": run})
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
    own = read_vocabulary(task, folder.catalogue())
    if given is not None and given != own:
        raise refusal(folder.path.name, "--catalogue", "its own vocabulary")
    return own


def run_partition(folder: RunDirectory, data: str, clients: int | None) -> tuple[str, int | None]:
    """Return the data of a resumed simulation, and the number of clients among which they are partitioned.

    Args:
        folder: Folder of the run.
        data: Data named by the command; `demo` if none are.
        clients: Number of clients set by the command; None if none is.

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


def option(key: str) -> str:
    """Return the option of the command line that sets a key."""
    return OPTIONS.get(key, f"--{key}")


def refusal(run: str, name: str, own: str) -> ConfigError:
    """Return the error about an option that a resumed run cannot change."""
    return ConfigError(f"run '{run}' continues with {own}; remove {name}, or start a new run without --resume")


def _may_change(key: str, own: Mapping[str, Scalar]) -> bool:
    """Return True if a resumed run may change the key.

    Under DP-SGD the cost of a round depends on its steps.
    """
    method = str(own["method"])
    fixed = method in PLANNERS and PLANNERS[method].options.fixed_rounds
    planned = fixed and (key == "rounds" or key.startswith(f"algorithm.{method}."))
    lasting = (*LASTING, ".local-steps") if own["privacy.unit"] == "record" else LASTING
    settled = key.startswith("algorithm.") and key.endswith(lasting)
    return key.startswith(FREE) and not settled and (not planned or key.endswith(STOPPING))


def _require_own(run: str, own: Mapping[str, Scalar], key: str, value: Scalar, name: str) -> None:
    if own["privacy.unit"] == "none" and key.startswith("privacy.") and key not in ("privacy.unit", "privacy.trust"):
        raise refusal(run, name, "no noise")
    if own[key] != value:
        raise refusal(run, name, f"its own {key}={own[key]}")
