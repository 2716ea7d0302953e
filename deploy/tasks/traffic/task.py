"""Traffic task at the command line and in reports."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from common.registry import imported
from deploy.cli import options as o
from deploy.cli.commands import CommandRef
from deploy.tasks.query import serving_in
from deploy.tasks.spec import DeployTask

if TYPE_CHECKING:
    from deploy.pages.view import RunRecord, Section

PLACE = "deploy.tasks.traffic"


@dataclass(frozen=True)
class SensorRequest:
    """A sensor, and the model that is applied to it."""

    site: Annotated[str, typer.Option(help="Use this sensor of the data; default: the first.")] = ""
    run: Annotated[
        str,
        typer.Option(
            help="Use this finished run, by name or folder; default: the newest that trained on the data, or else the newest."
        ),
    ] = ""
    client: Annotated[
        str, typer.Option(help="Use the model that this client stored; default: who trained on the data.")
    ] = ""
    state_dir: o.StateDir = o.STATE


def sections(records: "Sequence[RunRecord]") -> "Iterator[Section]":
    """Yield errors and satisfaction of the property by round, and by client before and after the teacher."""
    from deploy.tasks.traffic.sections import learning, teaching

    yield from (learning(records), teaching(records))


TASK = DeployTask(
    name="traffic",
    examples=imported(f"{PLACE}.forecast:held_out_forecasts"),
    clusters=imported(f"{PLACE}.words:describe_clusters"),
    sections=sections,
    commands=(
        CommandRef("forecast", f"{PLACE}.commands:forecast", "Forecast a sensor's next readings.", "Use"),
        CommandRef(
            "properties", f"{PLACE}.commands:properties", "Show the properties that a sensor's past satisfies.", "Use"
        ),
        CommandRef("data", f"{PLACE}.commands:data", "Make data sets.", "Prepare"),
    ),
    serving=serving_in("deploy.tasks.traffic.model_service", "site", "sensor"),
)
