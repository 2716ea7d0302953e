"""`fedloom export-model`: a finished run's model as an ONNX file with a model card."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from common.errors import ConfigError
from deploy.cli import options as o
from deploy.cli.signature import spread, with_query
from deploy.tasks.registry import DEPLOY_TASKS
from deploy.tasks.spec import DeployTask, QueryOption

UnitRequest = Annotated[
    str,
    typer.Option(
        "--data", help="Put one unit's own data and parameters of this file or folder into the export: personal."
    ),
]


def units(task: DeployTask) -> tuple[QueryOption, ...]:
    """Return the option that names a unit of the task's data."""
    return (task.serving.unit,) if task.serving else ()


@spread
@partial(with_query, of=units)
def export_model(
    query: Mapping[str, str],
    tables: o.TableRequest,
    onnx: Annotated[Path, typer.Option(metavar="FILE", help="Write the ONNX file here; it must be new.")],
    run: Annotated[str, typer.Argument(help="Export this finished run, by name or folder; default: the newest.")] = "",
    data: UnitRequest = "",
    state_dir: o.StateDir = o.STATE,
    checkpoint: o.Checkpoint = "",
    json: o.AsJson = False,
) -> None:
    """Export a finished run's model to ONNX.

    Writes the file and, beside it, model-card.md and model-card.json. The file is compared with torch before it is written.
    `fedloom serve-model FILE` answers with it on this machine, without torch. Needs the extra `serving`.
    """
    from common.config.parse import parse
    from common.tasks.registry import TASKS
    from common.text import size
    from deploy.cli.output import note, print_object, say
    from deploy.federation.runs import find_run, newest, stored_options
    from deploy.serving.export import export_run
    from deploy.serving.models import open_run

    folder = find_run(run) if run else newest(TASKS)
    name, task = folder.path.name, DEPLOY_TASKS.get(parse(stored_options(folder)).task)
    unit = _unit_of(query, task, name, data=bool(data))
    if (result := folder.result()) is None or task is None:
        why = "has not ended" if result is None else "is of a task that declares no export"
        raise ConfigError(f"run '{name}' {why}; name another run")
    source = o.DataRequest(data or "demo", **vars(tables))
    trained = open_run(folder, task.name, source, state_dir, checkpoint)
    page, card = export_run(trained, task, result, onnx, unit, data=bool(data))
    if json:
        print_object({"onnx": str(onnx), "card": [str(page), str(card)], "personal": bool(data)})
        return
    say(f"model   {onnx} ({size(onnx.stat().st_size)}), of run {name} ({trained.about})")
    say(f"card    {page} and {card.name}")
    say(f"serve   fedloom serve-model {onnx}")
    if data:
        note("the file contains what your data look like; do not hand on")


def _unit_of(query: Mapping[str, str], task: DeployTask | None, run: str, *, data: bool) -> str:
    """Return the name of the unit that is given; empty for the first.

    Raises:
        ConfigError: An option is of another task, or has no data.
    """
    given = {name: value for name, value in query.items() if value}
    usable = {option.name for option in units(task)} if task else set[str]()
    if unusable := sorted(given.keys() - usable):
        remedy = f"use {' or '.join(f'--{one}' for one in sorted(usable))}" if usable else "remove it"
        raise ConfigError(f"--{unusable[0]} does not apply to run '{run}'; {remedy}")
    if given and not data:
        raise ConfigError(f"--{next(iter(given))} needs data; add --data FILE")
    return next(iter(given.values()), "")
