"""List of the commands: name, place and one line each; listing imports none of them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class CommandRef:
    """Command by its import path.

    Args:
        name: Name on the command line.
        target: Import path `module:attribute` of a function or of a Typer application, imported when the command runs.
        summary: One line for `fedloom --help`; the first line of the command's own help.
        panel: Heading in `fedloom --help`: Train, Look, Use, Prepare or Owner.
    """

    name: str
    target: str
    summary: str
    panel: str


COMMANDS: tuple[CommandRef, ...] = (
    CommandRef("up", "deploy.commands.up:up", "Train with a whole federation on this machine.", "Train"),
    CommandRef("simulate", "deploy.commands.simulate:simulate", "Train in one process, without sockets.", "Train"),
    CommandRef("sweep", "deploy.commands.sweep:SWEEP", "Simulate over seeds and options, and compare.", "Train"),
    CommandRef("serve", "deploy.commands.serve:serve", "Serve a run to clients on other machines.", "Train"),
    CommandRef("join", "deploy.commands.join:join", "Take part in training with this machine's private data.", "Train"),
    CommandRef("helper", "deploy.commands.helper:helper", "Help clients to hide their updates in sums.", "Train"),
    CommandRef("door", "deploy.commands.door:door", "Serve a server's clients from another machine.", "Train"),
    CommandRef("stop", "deploy.commands.stop:stop", "Stop a federation of this folder.", "Train"),
    CommandRef("submit", "deploy.commands.serve:submit", "Start a run on a SuperLink that already serves.", "Train"),
    CommandRef("ui", "deploy.commands.ui:ui", "Show runs live in a browser.", "Look"),
    CommandRef("recommend", "deploy.commands.recommend:recommend", "Recommend by the model of a finished run.", "Use"),
    CommandRef("runs", "deploy.commands.runs:runs", "List, show, compare and remove stored runs.", "Look"),
    CommandRef(
        "export-model", "deploy.commands.export_model:export_model", "Export a finished run's model to ONNX.", "Use"
    ),
    CommandRef(
        "serve-model",
        "deploy.commands.serve_model:serve_model",
        "Answer requests by an exported model, on this machine only.",
        "Use",
    ),
    CommandRef(
        "report", "deploy.commands.runs:report", "Write report.html for one run, or to compare several.", "Look"
    ),
    CommandRef(
        "export", "deploy.commands.runs:export", "Record the rounds of runs in MLflow, Prometheus and others.", "Look"
    ),
    CommandRef("budget", "deploy.commands.budget:budget", "Show the privacy budgets of data, or raise one.", "Look"),
    CommandRef("check", "deploy.commands.preview:check", "Show what training would read from your data.", "Prepare"),
    CommandRef("invite", "deploy.commands.invite:invite", "Write the invitation for owners of clients.", "Prepare"),
    CommandRef("nodes", "deploy.commands.nodes:nodes", "Admit, list and revoke clients of this server.", "Prepare"),
    CommandRef(
        "forget", "deploy.commands.forget:forget", "Forget a client of this server, in all its runs.", "Prepare"
    ),
    CommandRef(
        "status",
        "deploy.commands.status:status",
        "Show the federation of this folder, and what a client on this machine was asked, sent and spent.",
        "Look",
    ),
    CommandRef(
        "preview", "deploy.commands.preview:preview", "Show what a client would send, without sending it.", "Prepare"
    ),
    CommandRef("keys", "deploy.commands.keys:keys", "Make certificates and node keys.", "Prepare"),
    CommandRef("tasks", "deploy.commands.tasks:tasks", "List the installed tasks.", "Look"),
    CommandRef("methods", "deploy.commands.tasks:methods", "List the installed methods and planners.", "Look"),
    CommandRef("config", "deploy.commands.config:config", "List and explain the options of runs.", "Prepare"),
    CommandRef("completion", "deploy.cli.app:completion", "Print the completion script of a shell.", "Prepare"),
    CommandRef("members", "deploy.commands.helper:members", "Show the members of a run's secure sums.", "Owner"),
    CommandRef(
        "accept",
        "deploy.commands.status:accept",
        "Agree to terms that a server offers beyond the agreed ones.",
        "Owner",
    ),
    CommandRef(
        "pause",
        "deploy.commands.status:pause",
        "Let the clients of a state folder refuse all work until `fedloom resume`.",
        "Owner",
    ),
    CommandRef("resume", "deploy.commands.status:resume", "End the pause of the clients of a state folder.", "Owner"),
    CommandRef(
        "leave",
        "deploy.commands.leave:leave",
        "Let the clients of a state folder leave after the work under way, like SIGTERM.",
        "Owner",
    ),
)
"""Commands of every task; those of one task are in its `DeployTask`."""
