"""Options that several commands share, declared once."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from common.config.overrides import overrides
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import ConfigError
from common.methods.planners import PLANNERS
from common.methods.registry import METHODS, method_names
from common.options import Scalar
from common.tasks.registry import FIRST_TASK, TASKS
from deploy.commands.resume import option, resumed
from server.artifacts import RunDirectory, make_run_id
from server.settings import ServerSettings

if TYPE_CHECKING:
    from client.data.tables.schema import Dialect

DEFAULTS = {task: str(TASKS[task].defaults.get("method", "fedavg")) for task in TASKS}
"""Method of a task where nobody names one."""

ROUNDS = {task: TASKS[task].defaults["rounds"] for task in TASKS if "rounds" in TASKS[task].defaults}
"""Rounds of a task where nobody names a method, if not those of every run."""

Method = Annotated[
    str,
    typer.Option(
        help=f"Training method: {', '.join(method_names())}; default: by the task, "
        f"{', '.join(f'{method} ({task})' for task, method in DEFAULTS.items())}."
    ),
]
Task = Annotated[str, typer.Option(help=f"What is learnt: {', '.join(TASKS)}; default: what the method was made for.")]
Data = Annotated[str, typer.Option(help="A data file, a folder of them, or 'demo' (made on the spot).")]
Test = Annotated[
    str, typer.Option(metavar="FILE", help="Sessions to hold out (task sessions); default: a share of everybody's own.")
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column", metavar="NAME=TITLE", help='Title of a column in your tables, e.g. user="Customer no."; repeatable.'
    ),
]
Decimal = Annotated[str, typer.Option(metavar="MARK", help="Decimal mark in your tables: auto, point or comma.")]
Dates = Annotated[
    str, typer.Option(metavar="FORM", help="Form of times in your tables: auto, iso, unix, excel, dmy or mdy.")
]
Rounds = Annotated[
    int | None,
    typer.Option(
        help=f"Rounds of training; default: {RunConfig().rounds}, without --method "
        f"{', '.join(f'{rounds} ({task})' for task, rounds in ROUNDS.items())}."
    ),
]
Seed = Annotated[int | None, typer.Option(help="Root of every random choice, default 0: one seed, one result.")]
Epsilon = Annotated[
    float | None,
    typer.Option(help="Noise on everything a client sends: ε of the whole run; also privacy.* with --set."),
]
Delta = Annotated[float | None, typer.Option(help="δ that goes with --epsilon; default: 1e-5.")]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Set any option, e.g. algorithm.fedrule.lam=0.5; repeatable."),
]
RunId = Annotated[str, typer.Option(help="Name of the run's folder; default: date, method and task.")]
Resume = Annotated[str, typer.Option(metavar="ID", help="Go on with this run from its newest checkpoint.")]
Catalogue = Annotated[
    Path | None, typer.Option(help="The federation's public vocabulary (JSON); default: what the data use.")
]
SharedCatalogue = Annotated[
    Path | None,
    typer.Option(
        "--catalogue", help="The public vocabulary (JSON) that all clients' data must speak; default: the demo's."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout; all else on stderr.")]
Json = Annotated[bool, typer.Option("--json", help="Print result.json as the last line of stdout; all else on stderr.")]
Port = Annotated[int, typer.Option(min=1, max=65535, help="Port that clients join.")]
ControlPort = Annotated[int, typer.Option(min=1, max=65535, help="Port of Flower's Control API, on this machine only.")]

console, out = Console(stderr=True), Console()
"""stderr for what goes on, stdout for what was asked for."""


def note(line: str) -> None:
    """A line on stderr, as it is."""
    console.print(line, soft_wrap=True, markup=False)


def dialect_of(data: str, columns: list[str] | None, decimal: str, dates: str) -> "Dialect":
    """Return how the owner's tables are written.

    Raises:
        ConfigError: An option has no such form or value, or the data are embedded.
    """
    from client.data.sources import is_demo
    from client.data.tables.schema import Dialect

    dialect = Dialect.of(columns or (), decimal, dates)
    if dialect.options and is_demo(data):
        raise ConfigError(f"{dialect.options[0]} needs your own data; name them with --data")
    return dialect


def runs_folder() -> Path:
    """Where runs live, absolute, since other processes are told of it."""
    return ServerSettings().runs.resolve()


def resolve(
    method: str,
    task: str,
    rounds: int | None,
    seed: int | None,
    run_id: str,
    resume: str,
    sets: list[str] | None,
    **own: Scalar | None,
) -> RunConfig:
    """The run's configuration from a command's options; `own`: what else it was told or decides, by key; None says nothing.

    Raises:
        ConfigError: An option is unknown, mistyped or contradicts another.
    """
    told: dict[str, Scalar | None] = {"method": method or None, "task": task or None, "rounds": rounds, "seed": seed}
    told |= {key.replace("__", ".").replace("_", "-"): value for key, value in own.items()}
    given = {key: value for key, value in told.items() if value is not None}
    further = overrides(sets or [])
    if resume:
        folder, called = RunDirectory(runs_folder(), resume), {"run-id": run_id} if run_id else {}
        return resumed(folder, flat(folder.config()), {**given, **called}, further)
    task = task or _task_of(method)
    unasked = {} if method else _unasked(task, private=given.get("privacy.epsilon"))
    plans = method in PLANNERS and PLANNERS[method].options.needs_noise
    noise: dict[str, Scalar] = {"privacy.unit": "client"} if "privacy.epsilon" in given or plans else {}
    config = parse({"task": task, **unasked, **noise, **given, **further})
    _require_noise(config, given, further)
    config = config.model_copy(update={"run_id": run_id or make_run_id(config.method, config.task)})
    RunDirectory(runs_folder(), config.run_id).require_new()
    return config


def _require_noise(config: RunConfig, given: Mapping[str, Scalar], sets: Mapping[str, Scalar]) -> None:
    """Who speaks of noise does not train without any."""
    if config.privacy.unit != "none":
        return
    told = [option(key) for key in given if key.startswith("privacy.")]
    told += [f"--set {key}" for key in sets if key.startswith("privacy.") and key != "privacy.unit"]
    if told:
        raise ConfigError(f"{told[0]} is of noise, and this run adds none: say --epsilon too, or leave {told[0]} out")


def _task_of(method: str) -> str:
    """Return the task that a method trains where none is named."""
    if method in PLANNERS:
        return PLANNERS[method].default_task or FIRST_TASK
    return (METHODS[method].default_task if method in METHODS else "") or FIRST_TASK


def _unasked(task: str, private: object) -> dict[str, Scalar]:
    """Return the task's default options; counts, whose noise covers less, do not go beside noise on all uploads."""
    options = TASKS[task].defaults if task in TASKS else {}
    return {key: value for key, value in options.items() if private is None or ".count-" not in key}


def flat(stored: dict[str, object]) -> dict[str, Scalar]:
    """Dotted keys as config.toml holds them."""
    if not all(isinstance(value, (bool, int, float, str)) for value in stored.values()):
        raise ConfigError("config.toml holds more than options")
    return dict(stored)  # type: ignore[arg-type]


def print_json(text: bytes) -> None:
    """One line, the last of stdout."""
    print_object(json.loads(text))


def print_object(found: object) -> None:
    """The same, of what JSON can hold."""
    sys.stdout.write(json.dumps(found, ensure_ascii=False) + "\n")
