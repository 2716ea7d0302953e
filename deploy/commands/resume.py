"""`--resume`: a stored run goes on as the run it is, for more rounds if asked."""

from collections.abc import Mapping

from client.data.sources import is_demo
from common.config.flatten import flatten
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import ConfigError
from common.options import Scalar
from common.tasks.registry import read_vocabulary
from common.tasks.vocabulary import Vocabulary
from deploy.report.launch_record import origin_of
from server.artifacts import RunDirectory
from server.events import ENDED_EARLY

FREE = ("rounds", "evaluate-every", "federation.", "algorithm.")
"""What may change while a run goes on: how long, how it waits, and how it steps. All else makes it another run."""

LASTING = (".clusters", ".cluster-data", ".inner")
"""Options of a method that say what its stored state is of."""

STOPPING = (".stop", ".patience", ".min-gain")
"""Options of a planner that say when it stops."""

UNNAMED = "demo"
"""`--data` where nobody names any."""

OPTIONS = {"privacy.epsilon": "--epsilon", "privacy.delta": "--delta"}
"""Options whose keys are called otherwise."""


def resumed(
    folder: RunDirectory, stored: Mapping[str, Scalar], told: Mapping[str, Scalar], sets: Mapping[str, Scalar]
) -> RunConfig:
    """A stored run's configuration, with what may change of it.

    Args:
        folder: The run's.
        stored: Its configuration.
        told: Options of the command, by key.
        sets: Those of `--set`.

    Raises:
        ConfigError: An option would make another run of it, or there is nothing left to do.
    """
    run, own = folder.path.name, flatten(parse(stored))
    sets = {key.replace("_", "-"): value for key, value in sets.items()}
    for options, by_set in ((told, False), (sets, True)):
        for key in [key for key in options if key in own and not _free(key, own)]:
            _require_own(run, own, key, options[key], f"--set {key}" if by_set else option(key))
    config = parse({**own, **told, **sets, "resume": True, "run-id": run})
    with folder.lock():  # says at once if the run still goes on
        result = folder.result()
    if result is not None and result.rounds_done >= config.rounds:
        if config.method == "bgtplanner":
            raise ConfigError(f"run '{run}' has done all the rounds that its budget was planned for")
        done = "its one round" if result.rounds_done == 1 else f"all its {result.rounds_done} rounds"
        raise ConfigError(f"run '{run}' has done {done}; ask for more with --rounds")
    if result is not None and result.reason.startswith(ENDED_EARLY):
        raise ConfigError(f"run '{run}' {result.reason}; its clients answer no further round of it")
    return config


def own_catalogue(folder: RunDirectory, task: str, given: Vocabulary | None) -> Vocabulary:
    """The vocabulary of a run that goes on.

    Raises:
        ConfigError: Another one was given.
    """
    own = read_vocabulary(task, folder.catalogue())
    if given is not None and given != own:
        raise refusal(folder.path.name, "--catalogue", "its own vocabulary")
    return own


def own_dealing(folder: RunDirectory, data: str, clients: int | None) -> tuple[str, int | None]:
    """The data of a simulation that goes on, and how many clients they were dealt to.

    Args:
        folder: The run's.
        data: As they are named now; "demo" where nobody says.
        clients: As many as they are dealt to now; None where nobody says.

    Raises:
        ConfigError: The run is of other clients or other data.
    """
    run, origin = folder.path.name, origin_of(folder.path)
    if origin is None:
        return data, clients
    if origin.command != "simulate":
        raise ConfigError(
            f"run '{run}' was started by fedloom {origin.command}, and its clients are elsewhere: resume it with that"
        )
    if clients not in (None, origin.clients):
        raise refusal(run, "--clients", f"its own --clients {origin.clients}")
    if origin.data and data not in (UNNAMED, origin.data):
        raise refusal(run, "--data", f"its own {origin.data}")
    if not origin.data and is_demo(data):
        raise ConfigError(f"run '{run}' goes on with its own data, which no run writes down: name them with --data")
    return origin.data or data, origin.clients


def option(key: str) -> str:
    """The option of the command line that sets a key."""
    return OPTIONS.get(key, f"--{key}")


def refusal(run: str, name: str, own: str) -> ConfigError:
    """What to say of an option that a run which goes on has settled."""
    return ConfigError(f"run '{run}' goes on with {own}: leave {name} out, or start a new run without --resume")


def _free(key: str, own: Mapping[str, Scalar]) -> bool:
    """Whether it may change.

    BGTplanner remembers rounds in terms of its arms, its context and its T; under DP-SGD a round costs what its steps do.
    """
    planned = own["method"] == "bgtplanner" and (key == "rounds" or key.startswith("algorithm.bgtplanner."))
    lasting = (*LASTING, ".local-steps") if own["privacy.unit"] == "record" else LASTING
    settled = key.startswith("algorithm.") and key.endswith(lasting)
    return key.startswith(FREE) and not settled and (not planned or key.endswith(STOPPING))


def _require_own(run: str, own: Mapping[str, Scalar], key: str, value: Scalar, name: str) -> None:
    silent = own["privacy.unit"] == "none" and key.startswith("privacy.") and key != "privacy.unit"
    if silent:
        raise refusal(run, name, "no noise")
    if own[key] != value:
        raise refusal(run, name, f"its own {key}={own[key]}")
