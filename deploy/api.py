"""Public surface for plug-ins: a task at the command line and in reports; imports no torch."""

from deploy.cli.commands import CommandRef
from deploy.pages.view import RunRecord, Section, figure, figure_of, section, table
from deploy.serving.spec import Export, ModelAnswer, RankingRequest, Request, ServedModel, Serving
from deploy.tasks.spec import Answers, DeployTask, QueryOption, ServingRef, TrainedRun

__all__ = [
    "Answers",
    "CommandRef",
    "DeployTask",
    "Export",
    "ModelAnswer",
    "QueryOption",
    "RankingRequest",
    "Request",
    "RunRecord",
    "Section",
    "ServedModel",
    "Serving",
    "ServingRef",
    "TrainedRun",
    "figure",
    "figure_of",
    "section",
    "table",
]
