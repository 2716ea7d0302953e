"""Options of commands that show or serve runs; `deploy.cli.options` has them too."""

from typing import Annotated

import typer

from deploy.cli.completions import list_runs

FinishedRun = Annotated[
    str, typer.Option(autocompletion=list_runs, help="Use this finished run, by name or folder; default: the newest.")
]
Runs = Annotated[
    list[str] | None,
    typer.Argument(autocompletion=list_runs, help="Runs, by name or folder; default: the newest."),
]
Checkpoint = Annotated[
    str,
    typer.Option(
        metavar="best|final|ROUND",
        help="Use the model of the best validated round, of the last round or of this round; default: best if there is one.",
    ),
]
Ui = Annotated[bool, typer.Option("--ui", help="Serve a live page of the run to this machine, as `fedloom ui` does.")]
Examples = Annotated[
    bool,
    typer.Option(
        "--examples",
        help="Store examples of the model's answers for your own data too; generated data always have them.",
    ),
]
Port = Annotated[int, typer.Option(min=1, max=65535, help="Let clients connect to this port.")]
ControlPort = Annotated[
    int, typer.Option(min=1, max=65535, help="Serve Flower's Control API on this port, for this machine only.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout and everything else on stderr.")]
Json = Annotated[
    bool, typer.Option("--json", help="Print result.json as the last line of stdout and everything else on stderr.")
]
