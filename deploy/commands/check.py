"""`fedloom check`: what a data source holds before training."""

from pathlib import Path
from typing import Annotated

import typer

from deploy.cli import options as o


def check(
    data: Annotated[str, typer.Argument(help="Read this data file or folder of files.")],
    task: Annotated[str, typer.Option(help="Read it as data of this task (see `fedloom tasks`).")],
    columns: o.Columns = None,
    decimal: o.Decimal = "auto",
    dates: o.Dates = "auto",
    partition: o.Partition = "",
    catalogue: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the vocabulary of the data to this file (JSON).")
    ] = None,
    clients: Annotated[
        int, typer.Option(min=0, help="Partition the data among so many clients, and name those with too little.")
    ] = 0,
    json: o.AsJson = False,
) -> None:
    """Show what training would read from your data.

    Reads the data as training does. Shows rows read and left out, forms of numbers and dates, units of data, and what a client
    could learn. Nothing leaves this machine, and no row is printed. The exit status is 3 if nobody has anything to train on.
    """
    from common.tasks.registry import TASKS
    from common.text import printable
    from deploy.cli.output import note, print_object, say
    from deploy.data.check import check_data, lines_of, require_trainable
    from deploy.files import write_file

    TASKS[task]  # an unknown task is answered with the nearest names
    source = o.TrainingData(data, columns, decimal, dates, partition)
    report = check_data(task, data, clients, source.dialect)
    if json:
        print_object(report.to_json())
    else:
        for line in lines_of(report):
            say(printable(line, 1_000))
    require_trainable(report)
    if catalogue:
        write_file(catalogue, report.vocabulary.encode())
        note(f"wrote {catalogue}: the names that a federation makes public; read it before you hand it on")
