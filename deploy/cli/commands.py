"""List of the commands: name, place and one line each; listing imports none of them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class CommandRef:
    """Command by its import path.

    Args:
        name: Name on the command line.
        target: Import path `module:attribute` of a function or of a Typer application, imported when the command runs.
        summary: One line for `fedloom --help`; the first line of the command's own help.
    """

    name: str
    target: str
    summary: str


COMMANDS: tuple[CommandRef, ...] = (
    CommandRef("up", "deploy.commands.up:up", "Train with a whole federation on this machine."),
    CommandRef("simulate", "deploy.commands.simulate:simulate", "Train in one process, without sockets."),
    CommandRef("serve", "deploy.commands.serve:serve", "Serve a run to clients on other machines."),
    CommandRef("join", "deploy.commands.join:join", "Take part in training with this machine's private data."),
    CommandRef("submit", "deploy.commands.submit:submit", "Start a run on a SuperLink that already serves."),
    CommandRef("recommend", "deploy.commands.recommend:recommend", "Recommend by the model of a finished run."),
    CommandRef("report", "deploy.commands.report:report", "Write report.html for one run, or to compare several."),
    CommandRef("export", "deploy.commands.export:export", "Export the rounds of runs to TensorBoard or Prometheus."),
    CommandRef("budget", "deploy.commands.budget:budget", "Show the privacy budgets of data, or raise one."),
    CommandRef("keys", "deploy.commands.keys:keys", "Make certificates and node keys."),
    CommandRef("tasks", "deploy.commands.tasks:tasks", "List the installed tasks."),
    CommandRef("methods", "deploy.commands.methods:methods", "List the installed methods and planners."),
    CommandRef("config", "deploy.commands.config:config", "List the options of runs."),
)
"""Commands of every task; those of one task are in its `DeployTask`."""
