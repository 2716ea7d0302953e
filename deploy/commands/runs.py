"""`fedloom runs`, `report` and `export`: stored runs in lists, comparisons, pages and other tools."""

from pathlib import Path
from typing import Annotated

import typer

from common.errors import ConfigError, FedloomError, RunError
from deploy.cli import options as o
from deploy.cli.options import list_runs

runs = typer.Typer(
    invoke_without_command=True,
    add_completion=False,
    suggest_commands=False,
    help="List, show, compare and remove stored runs.\n\nWithout a command, lists the runs, newest first.",
)

OfTask = Annotated[str, typer.Option("--task", help="List runs of this task only.")]
Names = Annotated[list[str], typer.Argument(autocompletion=list_runs, metavar="ID...", help="Runs, by name.")]


@runs.callback()
def default(context: typer.Context, task: OfTask = "", json: o.AsJson = False) -> None:
    """List the runs if no command is named."""
    if context.invoked_subcommand is None:
        list_(task, json)


@runs.command("list")
def list_(task: OfTask = "", json: o.AsJson = False) -> None:
    """List the stored runs, newest first."""
    from common.text import printable
    from deploy.cli.output import note, print_object, say
    from deploy.federation.runs import runs_folder, stored_runs
    from deploy.pages.terminal import as_json, print_runs
    from deploy.pages.view import first_line, read

    folder, records = runs_folder(), []
    for run in stored_runs(folder):
        try:
            record = read(run.path)
        except (FedloomError, ValueError, OSError) as error:
            note(f"{run.path.name} cannot be read: {first_line(printable(str(error)))}")
            continue
        if task in ("", record.task):
            records.append(record)
    if json:
        print_object([as_json(record) for record in records])
    elif records:
        print_runs(records)
    else:
        say(f"no {f'{task} ' if task else ''}runs in {folder}; train one, for example with fedloom up")


@runs.command()
def show(
    run: Annotated[str, typer.Argument(autocompletion=list_runs, metavar="ID", help="Run, by name or folder.")],
    json: o.AsJson = False,
) -> None:
    """Show a run: result, privacy, time and files."""
    from deploy.cli.output import print_object, say
    from deploy.federation.runs import find_run
    from deploy.pages.terminal import as_json, describe
    from deploy.pages.view import read

    record = read(find_run(run).path)
    if json:
        print_object(as_json(record))
        return
    for line in describe(record):
        say(line)


@runs.command()
def compare(names: Names, json: o.AsJson = False) -> None:
    """Compare the metrics of runs with paired differences to the first.

    A difference is of the same clients in both runs: mean and standard error. The best value is marked only if the runs have
    the same task, data and split.
    """
    from deploy.cli.output import print_object
    from deploy.federation.runs import find_run
    from deploy.pages.terminal import comparison_as_json, print_comparison

    folders = [find_run(name).path for name in dict.fromkeys(names)]
    if len(folders) < 2:
        raise ConfigError("a comparison needs two runs; name another one")
    if json:
        print_object(comparison_as_json(folders))
    else:
        print_comparison(folders)


@runs.command()
def rm(
    names: Annotated[
        list[str] | None, typer.Argument(autocompletion=list_runs, metavar="ID...", help="Runs, by name.")
    ] = None,
    older_than: Annotated[
        str, typer.Option(metavar="AGE", help="Remove only runs without changes for so long, such as 12h, 30d or 8w.")
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove without a question.")] = False,
    now: Annotated[bool, typer.Option("--now", help="Delete at once instead of moving to .trash.")] = False,
    json: o.AsJson = False,
) -> None:
    """Remove stored runs.

    Moves their folders to .trash in the folder of runs. A run in use is never removed. Privacy ledgers and the state of clients
    stay: what was released stays released.
    """
    from common.text import count
    from deploy.cli.output import is_confirmed, print_object, say
    from deploy.federation.runs import find_removable, read_age, remove, runs_folder, select_older, stored_runs

    root = runs_folder()
    if not names and not older_than:
        raise ConfigError("no run is named; give names, or --older-than AGE")
    chosen = [find_removable(root, name) for name in dict.fromkeys(names or [])] if names else stored_runs(root)
    chosen = select_older(chosen, read_age(older_than)) if older_than else chosen
    question = f"{'delete' if now else 'move to .trash:'} {count(len(chosen), 'run')}"
    if chosen and not yes and not is_confirmed("removing runs", [run.path.name for run in chosen], question):
        chosen = []
    paths = [str(path) for path in remove(chosen, root, now=now)]
    if json:
        print_object(
            [{"run": run.path.name, "moved_to": "" if now else path} for run, path in zip(chosen, paths, strict=True)]
        )
        return
    for run, path in zip(chosen, paths, strict=True):
        say(f"deleted {run.path.name}" if now else f"moved {run.path.name} to {path}")
    if not chosen:
        say("nothing was removed")


def report(
    runs: o.Runs = None,
    out: Annotated[Path | None, typer.Option(help="Write the page here; default: into the first run's folder.")] = None,
    json: o.AsJson = False,
) -> None:
    """Write report.html for one run, or to compare several.

    The page shows curves, the spread over clients, timings and the configuration.
    """
    from deploy.cli.output import print_object, say
    from deploy.federation.runs import find_run, newest
    from deploy.pages.report import render

    folders = [find_run(name).path for name in runs] if runs else [newest().path]
    page = render(folders, out or folders[0] / "report.html")
    if json:
        print_object({"report": str(page)})
    else:
        say(str(page))


def export(
    runs: o.Runs = None,
    track: o.Track = None,
    follow: Annotated[bool, typer.Option(help="Continue until the run is over.")] = False,
    json: o.AsJson = False,
) -> None:
    """Record the rounds of runs in MLflow, Prometheus and others.

    `--track` names the tool, which needs its package. The file metrics.jsonl of a run holds the same, one event a line.
    """
    from common.text import count
    from deploy.cli.output import print_object, say
    from deploy.federation.runs import find_run, newest
    from deploy.pages.tracker import TRACKERS, choose
    from deploy.pages.tracker import export as record
    from deploy.pages.view import first_line

    if not track:
        raise ConfigError(f"no target is set; give --track NAME=TARGET, with one of {', '.join(TRACKERS)}")
    if follow and not runs:
        raise ConfigError("--follow needs the name of a run; the newest finished run is over already")
    chosen, folders, places = choose(track), [find_run(name) for name in runs] if runs else [newest()], track
    try:
        rounds = sum(record(folder, chosen, follow=follow) for folder in folders)
    except (FedloomError, OSError):
        raise
    except Exception as error:  # of another package: any class
        raise RunError(f"{' or '.join(places)} recorded nothing more: {first_line(str(error))}; check it") from error
    if json:
        print_object({"rounds": rounds, "written": places})
    else:
        say(f"{count(rounds, 'round')} written to {' and '.join(places)}")
