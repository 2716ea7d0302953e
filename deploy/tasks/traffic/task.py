"""Traffic task at the command line and in reports."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from common.registry import imported
from deploy.cli.commands import CommandRef
from deploy.tasks.query import serving_in
from deploy.tasks.spec import DeployTask

if TYPE_CHECKING:
    from deploy.report.run import RunRecord
    from deploy.report.sections import Section

PLACE = "deploy.tasks.traffic"


def sections(records: "Sequence[RunRecord]") -> "Iterator[Section]":
    """Yield errors and satisfaction of the property by round, and by client before and after the teacher."""
    from deploy.tasks.traffic.sections import learning, teaching

    yield from (learning(records), teaching(records))


TASK = DeployTask(
    name="traffic",
    examples=imported(f"{PLACE}.examples:held_out_forecasts"),
    clusters=imported(f"{PLACE}.cluster_words:describe_clusters"),
    sections=sections,
    commands=(
        CommandRef("forecast", f"{PLACE}.commands:forecast", "Forecast a sensor's next readings.", "Use"),
        CommandRef(
            "properties", f"{PLACE}.commands:properties", "Show the properties that a sensor's past satisfies.", "Use"
        ),
        CommandRef("data", f"{PLACE}.data:data", "Make data sets.", "Prepare"),
    ),
    serving=serving_in("deploy.tasks.traffic.model_service", "site", "sensor"),
)
