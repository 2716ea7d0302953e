"""Command line of the studies.

`python -m studies run STUDY` computes what the stored results lack, stores it and remakes the page.
`python -m studies page STUDY` remakes the page from the stored results alone.
`python -m studies worth` remakes the page on what federation is worth.
`python -m studies claims` remakes the verdicts on the papers' claims, `claims.csv` and `claims.md`.
`python -m studies plan` lists the runs that these claims still need, with their expected time.
`python -m studies readme` remakes the table of results in README.md.
`python -m studies speed NAME` times one part of fedloom; further options are those of `studies/speed/NAME.py`.
"""

import argparse
import logging
import math
import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

from common.errors import FedloomError
from studies.harness.study import (
    DATA,
    RESULTS,
    ROOT,
    STUDIES,
    Selection,
    Study,
    all_results,
    write_claims,
    write_readme,
    write_worth,
)
from studies.plugins import provide

NOT_TIMED = ("__init__", "timing", "sessions_reference")


def main() -> int:
    """Run the command; return its exit status."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # BLAS reads it at its import; the matrices are small
    arguments = sys.argv[1:]
    provide()
    if arguments[:1] == ["speed"]:
        return _speed(arguments[1:])
    options = _parser().parse_args(arguments)
    if options.command == "readme":
        write_readme()
        return 0
    try:
        if options.command in WHOLE:
            print(WHOLE[options.command](options))
            return 0
        study = Study(options.study, options.out)
        if options.command == "run":
            _run(study, options)
        print(study.write_page())
    except FedloomError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m studies", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    page = commands.add_parser("page", help="remake a page from the stored results")
    run = commands.add_parser("run", help="compute what the stored results lack")
    claims = commands.add_parser("claims", help="remake the verdicts on the papers' claims")
    worth = commands.add_parser("worth", help="remake the page on what federation is worth")
    plan = commands.add_parser("plan", help="list the runs that the papers' claims still need")
    plan.add_argument("--budget", type=float, default=math.inf, metavar="HOURS", help="hours of one core")
    commands.add_parser("readme", help="remake the table of results in README.md")
    commands.add_parser("speed", help="time one part of fedloom")
    for command in (page, run):
        command.add_argument("study", choices=STUDIES)
    for command in (page, run, claims, worth, plan):
        command.add_argument("--out", type=Path, default=RESULTS, help="folder of all results")
    run.add_argument(
        "--only", nargs="+", action="extend", default=[], metavar="ROW", help="short names of rows, or PROTOCOL/ROW"
    )
    run.add_argument("--sets", nargs="+", action="extend", default=[], metavar="SET", help="short names of data sets")
    run.add_argument("--seeds", type=int, default=1_000, help="largest number of seeds")
    run.add_argument("--data", type=Path, default=DATA, help="folder of the data sets")
    run.add_argument("--cache", type=Path, help="trials that are not stored yet; default runs/bench-STUDY")
    return parser


def _run(study: Study, options: argparse.Namespace) -> None:
    import torch  # pages do without

    torch.set_num_threads(1)
    for name in ("flwr", "fedloom"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    selection = Selection(options.data, options.only, options.sets, options.seeds)
    study.run(selection, options.cache or ROOT / "runs" / f"bench-{study.name}")


def _plan(options: argparse.Namespace) -> str:
    from studies.harness.papers import CLAIMS  # it imports the studies
    from studies.harness.plan import missing_runs, plan_lines

    contrasts = [one for claim in CLAIMS for one in claim.needed]
    return "\n".join(plan_lines(missing_runs(contrasts, all_results(options.out)), options.budget))


def _speed(arguments: list[str]) -> int:
    names = sorted(path.stem for path in (ROOT / "studies" / "speed").glob("*.py") if path.stem not in NOT_TIMED)
    if not arguments or arguments[0] not in names:
        print(f"usage: python -m studies speed NAME [option ...]; names: {', '.join(names)}", file=sys.stderr)
        return 2
    sys.argv = [f"python -m studies speed {arguments[0]}", *arguments[1:]]
    return int(import_module(f"studies.speed.{arguments[0]}").main() or 0)


WHOLE: Mapping[str, Callable[[argparse.Namespace], Path | str]] = {
    "claims": lambda options: write_claims(options.out),
    "worth": lambda options: write_worth(options.out),
    "plan": _plan,
}
"""Command on all studies -> its page, or what it prints."""

if __name__ == "__main__":
    sys.exit(main())
