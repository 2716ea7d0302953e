"""`fedloom sweep`: runs over seeds and options."""

from typing import Annotated

import typer

from deploy.cli import options as o

SWEEP = typer.Typer(add_completion=False)


@SWEEP.command("sweep", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def sweep(
    context: typer.Context,
    seeds: Annotated[str, typer.Option("--seed", metavar="SEED,…", help="Train with each of these seeds.")] = "0,1,2",
    over: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE,…", help="Train with each of these values of an option; several make a grid."),
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=0, help="Run so many beside each other; 0: as many as cores and memory allow.")
    ] = 0,
    json: o.AsJson = False,
) -> None:
    """Simulate over seeds and options, and compare.

    Takes every other option of `fedloom simulate`. The table has the task's objective with a 95 % interval over seeds, and for
    each setting whether it differs from the best one. Hold out validation data to choose by them:
    --set tasks.TASK.validation-share=0.1, or --patience.
    """
    from common.errors import ConfigError
    from deploy.cli.output import aligned, note, print_object, say
    from deploy.federation.sweep import sweep as run

    if not all(seed.strip().isdigit() for seed in seeds.split(",")):
        raise ConfigError(f"--seed {seeds}: name whole numbers, such as 1,2,3")
    grid = {}
    for word in over or []:
        key, mark, values = word.partition("=")
        if not (mark and values):
            raise ConfigError(f"--over {word}: name values, such as training.lr=0.01,0.1")
        grid[key] = values.split(",")
    found = run(context.args, [int(seed) for seed in seeds.split(",")], grid, jobs)
    if json:
        print_object(found.rows())
        return
    split, rows = found.settings[0].split, [[one.label, one.figure, found.clarity(one)] for one in found.settings]
    for line in aligned([["options", f"{found.metric} ({split})", ""], *rows]):
        say(line)
    if len(rows) > 1 and split == "test":
        note("measured on test data: report it, and choose by validation data (see fedloom sweep --help)")
