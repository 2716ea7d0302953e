"""`fedloom budget`: statements of the privacy ledgers on this machine, and increases of a limit."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from common.errors import LedgerError
from common.text import count
from deploy.cli import options as o

if TYPE_CHECKING:
    from client.privacy.claim import Statement


def budget(
    data: Annotated[
        str, typer.Option(help="Use this data file or folder; default: all data with state on this machine.")
    ] = "",
    state_dir: Annotated[
        Path,
        typer.Option(
            "--state",
            "--state-dir",
            help="Find clients' private state here; give the folder that `fedloom join` was given.",
        ),
    ] = o.STATE,
    ledgers: Annotated[
        Path | None, typer.Option(help="Find privacy ledgers in this folder instead of beside the data.")
    ] = None,
    raise_to: Annotated[
        float | None,
        typer.Option(
            metavar="EPS", help="Raise the limit of --data to this ε over all runs; stop the client of the data before."
        ),
    ] = None,
    json: o.AsJson = False,
) -> None:
    """Show the privacy budgets of data, or raise one.

    Shows what each run has spent, what remains, and which claim holds. The guarantee holds for the total budget, fixed
    beforehand. The ε spent so far is for planning only.

    The limit is the smaller of max-epsilon in the policy file and of the ledger's limit since the first release. To lower it,
    change the policy file. To raise it, set --raise-to EPS and change the file; the ledger stores the time of each increase.
    """
    from deploy.cli.output import print_object, say
    from deploy.data.budgets import list_statements, raise_limit
    from deploy.federation.runs import origin_of, runs_folder

    if raise_to is not None:
        raise_limit(raise_to, data, state_dir, ledgers)
    found, broken = list_statements(data, state_dir, ledgers)
    if json:
        print_object([as_json(one) for one in found])
    else:
        for line in [line for one in found for line in as_lines(one)]:
            say(line)
        if not found and not broken:
            say("no privacy budget was spent here")
            origins = map(origin_of, runs_folder().glob("*"))
            if any(origin and origin.command == "simulate" for origin in origins):
                say("simulations keep no ledger: each has its clients in one process, and their state ends with it")
    if broken:
        raise LedgerError("\n".join(map(str, broken)))


def as_json(one: "Statement") -> dict[str, object]:
    """Return a statement, with the texts of its claim, as a JSON object."""
    claim = one.claim
    texts = {"left": claim.left, "limited": claim.limited, "covers": claim.covers, "uncovered": claim.uncovered}
    return {"ledger": one.ledger, **asdict(claim), **texts, "runs": [asdict(run) for run in one.runs]}


def as_lines(one: "Statement") -> Iterator[str]:
    """Iterate over the lines of a statement."""
    from common.contract import SHORT

    claim = one.claim
    delta = f", δ = {claim.delta:g}" if claim.delta else ""
    yield one.ledger
    yield f"  unit {claim.unit} ({claim.neighbours}), {', '.join(claim.mechanisms) or 'no release yet'}"
    yield from _limit_lines(one, delta)
    yield f"  spent so far: ε = {claim.epsilon_so_far:.4g}{delta}; for planning only, no guarantee"
    yield from _raise_lines(one)
    for run in one.runs:
        wasted = f", {run.wasted} of them perhaps never sent" if run.wasted else ""
        trust = "" if claim.local_epsilon is None else f", trust {', '.join(run.trust)}"
        terms = f", terms {', '.join(one[:SHORT] for one in run.contracts)}" if run.contracts else ""
        yield f"    run {run.run}: {run.spent:.6g} in {count(run.releases, 'release')}{wasted}{trust}{terms}"
    yield f"  covers {claim.covers}"
    for channel in claim.uncovered:
        yield f"  does not cover {channel}"


def _limit_lines(one: "Statement", delta: str) -> Iterator[str]:
    from deploy.pages.statement import counted

    claim = one.claim
    if claim.limited:
        yield f"  guarantee: ε = {claim.epsilon:g}{delta}, for all requests together"
        yield f"  spent {claim.spent:.6g} of {claim.total:.6g} in {counted(claim.account)}, {claim.left:.6g} remaining"
        if claim.beside:
            yield f"  nothing more is released under unit {claim.unit}: a limit over all runs is of one unit"
        yield "  to lower it, set a smaller max-epsilon in the policy; to raise it, fedloom budget --data DATA --raise-to EPS"
    else:
        yield f"  spent {claim.spent:.6g} in {counted(claim.account)}; no limit over all runs is set (policy: max-epsilon)"
    if claim.spent > claim.total:
        yield "  spent more than the limit set since: nothing more is released, and the earlier guarantee holds"


def _raise_lines(one: "Statement") -> Iterator[str]:
    from common.privacy.claims import UNBOUNDED

    for raised in one.claim.raises:
        first = raised.before >= UNBOUNDED
        done = "limited by the owner" if first else f"raised by the owner from ε = {raised.before:g}"
        yield f"  {done} to ε = {raised.epsilon:g} at {raised.time}"
