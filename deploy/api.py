"""Public surface for plug-ins: a task at the command line and in reports; imports no torch."""

from deploy.cli.commands import CommandRef
from deploy.report.run import RunRecord
from deploy.report.sections import Section, figure, figure_of, section, table
from deploy.tasks.spec import Answers, DeployTask, QueryOption, TrainedRun

__all__ = [
    "Answers",
    "CommandRef",
    "DeployTask",
    "QueryOption",
    "RunRecord",
    "Section",
    "TrainedRun",
    "figure",
    "figure_of",
    "section",
    "table",
]
