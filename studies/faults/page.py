"""Page of the faults benchmark, from its stored results alone."""

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from studies.faults.kinds import PAUSE_SECONDS, RESTART_SECONDS, SERVE_RESTART_SECONDS

GOAL_MEDIAN_SECONDS, GOAL_P95_SECONDS = 3.0, 8.0

FIRST_STUDY = 120
"""Number of runs before processes were found by their mark, and replies in journals."""

KINDS = {
    "client": ("a client of `up`", "`up`"),
    "ServerApp": ("the ServerApp of `up`", "`up`"),
    "SuperLink": ("the SuperLink of `up`", "`up`"),
    "up": ("`fedloom up`", "a service manager"),
    "everything": ("all processes of `up` at once", "a service manager"),
    "SuperExec": ("the SuperExec of a SuperLink as in `docker-compose.yml`, during `fedloom submit`", "the SuperLink"),
    "serve": ("`fedloom serve`, to which clients of their own belong (`fedloom join` over TLS)", "a service manager"),
    "pause": ("nothing; all processes of `up` stand still", "nobody"),
}
"""Fault -> what it kills, and who starts that again."""

Outcome = dict[str, Any]

REAL_TIME = "The processes of the runs had real-time priority, since the machine did other work too."

AGAIN = "\nRuns that `run --again {}` measured are newer than the others."

HEAD = """# Faults

{kills} kills and {pauses} pauses of {pause:.0f} s: each struck one run with three clients ({tasks}).
The moments are random with a fixed seed. `python -m studies.faults run` measures, `page` writes this page.

| fault | what is killed | what starts it again |
|---|---|---|
{kinds}

{totals}

A service manager's restart is one command of that manager. No person types it. For `up` and `everything` it is
`fedloom up --resume RUN`. For `serve` it is the command line that started the run, with `--resume-if-there`, as in the unit and
the compose file in `deploy/`. `fedloom up` has no unit.

A reply with noise counts if the server used it or the client's journal has it. Clients' ledgers are read after the run.

## Stalls

A stall is the time without a round line, less the usual time of a round and the time of the fault itself. That is a
pause, or the time until a service manager starts a killed command again. It is {restart:.0f} s for `up` and `everything`, and
{serve:.0f} s for `serve`, as its unit says. The others train on while a killed client is started again.

{stalls}

The machine had {cores} cores under a load of {load:.1f}. The goal of {median:.0f} s (median) and {p95:.0f} s (95th
percentile) over all runs is {met}. {missed}
{priority}{again}

SuperLink, ServerApp and clients are copies of a process that has imported Flower, and PyTorch for clients. A command that was
killed imports them anew. In `serve`, the SuperLink starts before the ServerApp's imports, and a ServerApp that resumes needs no
PyTorch. Its clients run on: they keep their prepared data, and reach it again within about a tenth of its absence.

## Not covered

- Machines that fail for longer than a minute, and disks that fill up.
- Ledgers of more than one run{noised}.
- Processes that the first {first} runs started after their fault, or at all where one process was killed. Their count lists
  children, and an ended command has none. Later runs find processes by a mark in their environment.
- Replies that the server did not use in the first {first} runs. Later runs read the clients' journals too.
- Networks. `tests/system/test_cut_networks.py` cuts one that delays all bytes and loses a hundredth of all packets.
"""


def write_page(stored: dict[str, Any]) -> str:
    """Return the page as Markdown."""
    runs: list[Outcome] = stored["runs"]
    pauses = sum(run["fault"] == "pause" for run in runs)
    return HEAD.format(
        kills=len(runs) - pauses,
        pauses=pauses,
        pause=PAUSE_SECONDS,
        tasks=", ".join(dict.fromkeys(run["task"] for run in runs)),
        kinds="\n".join(f"| {kind} | {what} | {who} |" for kind, (what, who) in KINDS.items()),
        restart=RESTART_SECONDS,
        serve=SERVE_RESTART_SECONDS,
        noised=_noised(runs),
        first=FIRST_STUDY,
        missed=_missed(runs),
        totals=_totals(runs),
        stalls=_stalls(runs),
        cores=stored["cores"],
        load=stored["load"],
        priority=REAL_TIME if stored["real_time"] else "",
        again=AGAIN.format(" ".join(stored["again"])) if stored["again"] else "",
        median=GOAL_MEDIAN_SECONDS,
        p95=GOAL_P95_SECONDS,
        met="met" if _is_goal_met(runs) else "not met",
    )


def _totals(runs: Sequence[Outcome]) -> str:
    by_server = [run for run in runs if run["comparable"]]
    rows = [
        "| what | result |",
        "|---|---|",
        f"| runs finished | {sum(run['status'] == 'completed' for run in runs)} of {len(runs)} |",
        f"| rounds lost | {sum(run['rounds_lost'] for run in runs)} of {sum(run['rounds'] for run in runs)} |",
        f"| round lines lost | {sum(run['lines_lost'] for run in runs)} of {sum(run['rounds'] for run in runs)} |",
        f"| round lines written twice | {sum(run['lines_twice'] for run in runs)} |",
        "| commands typed by a person after the start | 0 |",
        f"| commands of a service manager | {sum(run['restarts'] for run in runs)} |",
        f"| processes left | {sum(run['processes_left'] for run in runs)} |",
        f"| models equal to the unbroken run, without noise and kills of clients alone |"
        f" {sum(run['same_model'] for run in by_server)} of {len(by_server)} |",
    ]
    if releases := sum(run["releases"] for run in runs):
        missing = sum(run["unrecorded"] for run in runs)
        rows.append(f"| noised replies missing in a client's ledger | {missing} of {releases} |")
        for task in dict.fromkeys(run["task"] for run in runs if run["releases"]):
            own = [run for run in runs if run["task"] == task]
            missing, releases = (sum(run[name] for run in own) for name in ("unrecorded", "releases"))
            rows.append(f"| of them in {task} | {missing} of {releases} |")
    return "\n".join(rows)


def _stalls(runs: Sequence[Outcome]) -> str:
    kinds = sorted({run["fault"] for run in runs})
    rows = [(kind, [run["stall"] for run in runs if run["fault"] == kind]) for kind in kinds]
    rows += [("all", [run["stall"] for run in runs])]
    lines = [
        f"| {kind} | {len(seconds)} | {statistics.median(seconds):.1f} | {np.percentile(seconds, 95):.1f} |"
        for kind, seconds in rows
    ]
    return "\n".join(["| fault | number | median, s | 95th percentile, s |", "|---|---|---|---|", *lines])


def _noised(runs: Sequence[Outcome]) -> str:
    tasks = dict.fromkeys(run["task"] for run in runs if run["releases"])
    return f": only {_listed(tasks)} run with noise here" if tasks else ""


def _listed(names: Iterable[str]) -> str:
    *first, last = (f"`{name}`" for name in names)
    return f"{', '.join(first)} and {last}" if first else last


def _missed(runs: Sequence[Outcome]) -> str:
    kinds = sorted({run["fault"] for run in runs})
    slow = [kind for kind in kinds if not _is_goal_met([run for run in runs if run["fault"] == kind])]
    return f"Alone, {_listed(slow)} {'miss' if len(slow) > 1 else 'misses'} it." if slow else ""


def _is_goal_met(runs: Sequence[Outcome]) -> bool:
    seconds = [run["stall"] for run in runs]
    return statistics.median(seconds) <= GOAL_MEDIAN_SECONDS and float(np.percentile(seconds, 95)) <= GOAL_P95_SECONDS
