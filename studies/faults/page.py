"""Page of the faults benchmark, from its stored results alone."""

import statistics
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from studies.faults.attacks import ATTACKS, STRANGERS
from studies.faults.kinds import PAUSE_SECONDS, RESTART_SECONDS, SERVE_RESTART_SECONDS
from studies.faults.siege import FAULTS, SECONDS

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

## Attacks

Each attack strikes a run of `fedloom serve`: three clients with a fortieth of the demo rules, over TLS.
`python -m studies.faults attacks` measures rounds a second before, during and after it, and the largest memory of each process.
Attackers run on the same cores at the lowest priority (nice 19, also of their session), as if they had others. The run's
processes had a higher one (nice -15), since the machine did other work too; shares within a fifth of 1 are its noise.
Strangers come from an address of their own.
With `ca.pem` they pass the TLS handshake by the certificate of an unregistered key.

{attacks}

A stranger's attack should leave {share:.1f} of the rounds a second. It should cost the door {most:.0f} MB at most, and be
logged with its address. {judged} The load is the mean number of processes that wanted a core.

A registered key is no stranger. Until it is barred or revoked it is a client, for whose answers a round waits. Its line names
the key, and of two clients with a key both addresses. That of a server's flood is in the client's log. No round waits for a
newcomer that answers its invitation slowly, or for a reply to an earlier round.
{absent}
Faults of a client last {lasting}.
The slow line holds bytes back for .1 s each way and loses a twentieth of all packets. This kernel has no netem, so a relay and
`iptables` make it.

A client asleep stands still. Then its time of day is an hour ahead, and its clock for waits is not, as after a sleep under
Linux. Clocks of a time namespace cannot jump, so a library before the C library makes it. Python, gRPC and OpenSSL see it.

{twice}

{ages}
"""

MOST_DOOR_MB, LEAST_SHARE = 400.0, 0.8


def write_page(stored: dict[str, Any], sieges: dict[str, Any]) -> str:
    """Return the page of kills, pauses and attacks as Markdown."""
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
        share=LEAST_SHARE,
        most=MOST_DOOR_MB,
        **_attacks(sieges),
    )


def _attacks(stored: dict[str, Any]) -> dict[str, str]:
    rows: dict[str, Any] = stored["rows"]
    heads = ("attack", "before", "during", "after", "share", "door, MB", "ServerApp, MB", "client, MB", "line", "load")
    lines = [_line(heads), _line(["---"] * len(heads))]
    reached, missed = list[str](), list[str]()
    for kind, row in rows.items():
        share, door = _share(row), [one["memory"]["door"] for one in (*row["calm"], *row["attacked"])]
        rates = [row["calm"][0]["rate"], _median(row["attacked"]), row["calm"][-1]["rate"]]
        memory = ["/".join(f"{size:.0f}" for size in _sizes(row, name)) for name in ("door", "ServerApp", "client")]
        named = "–" if kind in FAULTS else "yes" if row["lines"] else "no"
        lines.append(
            _line([kind, *(f"{rate:.1f}" for rate in rates), f"{share:.2f}", *memory, named, f"{row['load']:.0f}"])
        )
        if kind in STRANGERS:
            is_met = share >= LEAST_SHARE and max(door) <= MOST_DOOR_MB and row["lines"]
            (reached if is_met else missed).append(kind)
    absent = [kind for kind in (*ATTACKS, *FAULTS) if kind not in rows]
    lost, twice = (sum(row[name] for row in rows.values()) for name in ("lines_lost", "lines_twice"))
    return {
        "attacks": "\n".join(lines),
        "judged": f"{len(reached)} of these {len(STRANGERS)} attacks reach it."
        + (f" Missed by {_listed(missed)}." if missed else ""),
        "absent": f"\nNot measured yet:\n\n{_items(absent)}\n" if absent else "",
        "twice": f"Of all these rounds, {lost} lines were lost and {twice} written twice.",
        "ages": _ages(stored["ages"]),
        "lasting": ", ".join(f"{seconds:.0f} s ({kind})" for kind, seconds in SECONDS.items()),
    }


def _ages(ages: Sequence[dict[str, float]]) -> str:
    if not ages:
        return "A run of 500 rounds is not measured yet."
    table = [_line(ages[0]), _line(["---"] * len(ages[0])), *(_line(f"{n:.0f}" for n in one.values()) for one in ages)]
    return "\n".join(["Memory of the largest process of each kind in a run of 500 rounds, in MB:", "", *table])


def _items(names: Iterable[str]) -> str:
    return "\n".join(f"- {name}" for name in names)


def _median(windows: Sequence[Any]) -> float:
    return float(statistics.median(one["rate"] for one in windows))


def _share(row: dict[str, Any]) -> float:
    """Return the median rate during attacks, as a share of the mean just before and after each."""
    calm = [(a["rate"] + b["rate"]) / 2 for a, b in pairwise(row["calm"])]
    return float(
        statistics.median(one["rate"] / max(rate, 0.01) for one, rate in zip(row["attacked"], calm, strict=True))
    )


def _sizes(row: dict[str, Any], name: str) -> list[float]:
    windows = row["calm"][:1], row["attacked"], row["calm"][-1:]
    return [max(one["memory"][name] for one in some) for some in windows]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


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
