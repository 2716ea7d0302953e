"""`budget`: what the privacy ledgers on this machine say, and the owner's word that more may be spent."""

import json as jsonlib
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from common.errors import ConfigError, DataError, LedgerError
from common.words import count
from deploy.cli import options as o
from deploy.cli.running import LOCAL, STATE

if TYPE_CHECKING:
    from client.privacy.statement import Statement


def budget(
    data: Annotated[
        str, typer.Option(help="A data file or folder; default: all data that the state folders know.")
    ] = "",
    state_dir: Annotated[
        Path, typer.Option("--state", "--state-dir", help="Where clients keep their private state, as `join` was told.")
    ] = STATE,
    ledgers: Annotated[
        Path | None, typer.Option(help="Folder of privacy ledgers, where they do not lie beside the data.")
    ] = None,
    raise_to: Annotated[
        float | None,
        typer.Option(metavar="EPS", help="Let that much be spent of --data, over all runs; stop their client before."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON list on stdout.")] = False,
) -> None:
    """What was spent of the privacy of these data, by which runs, what is left, and what may be claimed.

    The guarantee is that of the whole budget, fixed beforehand: the ε of what was spent so far is there to plan with.
    The limit is the smaller of max-epsilon in the policy file and of what the ledger holds since the first release. To lower
    it, change the file; to raise it, say --raise-to EPS and change the file. The ledger keeps when it was raised, and says so.
    """
    from client.privacy.statement import statements  # torch takes seconds; --help need not wait for it

    if raise_to is not None:
        _raise(raise_to, data, state_dir, ledgers)
    found: list[Statement] = []
    broken: list[LedgerError] = []
    for path in sorted(set(_of_data(data, state_dir, ledgers) if data else _known(state_dir))):
        try:
            found += statements(path)
        except LedgerError as error:
            broken.append(error)
    if json:
        o.print_json(jsonlib.dumps([as_json(one) for one in found]).encode())
    else:
        for line in [line for one in found for line in as_lines(one)] or ["no privacy was ever spent here"][
            len(broken) :
        ]:
            o.out.print(line, soft_wrap=True, markup=False, highlight=False)
    if broken:
        raise LedgerError("\n".join(map(str, broken)))


def as_json(one: "Statement") -> dict[str, object]:
    """A statement with the claim's words."""
    claim = one.claim
    worded = {"left": claim.left, "limited": claim.limited, "covers": claim.covers, "uncovered": claim.uncovered}
    return {"ledger": one.ledger, **asdict(claim), **worded, "runs": [asdict(run) for run in one.runs]}


def as_lines(one: "Statement") -> Iterator[str]:
    """A statement for people."""
    claim = one.claim
    delta = f", δ = {claim.delta:g}" if claim.delta else ""
    yield one.ledger
    yield f"  unit {claim.unit} ({claim.neighbours}), {', '.join(claim.mechanisms) or 'nothing released yet'}"
    if claim.limited:
        yield f"  guarantee: ε = {claim.epsilon:g}{delta}, whatever is still asked"
        yield f"  spent {claim.spent:.6g} of {claim.total:.6g} ({claim.account}), left {claim.left:.6g}"
        yield "  to lower that, say a smaller max-epsilon in the policy; to raise it, fedloom budget --data DATA --raise-to EPS"
    else:
        yield f"  spent {claim.spent:.6g} ({claim.account}); no limit over all runs is set (max-epsilon in the policy)"
    yield f"  what was spent comes to ε = {claim.epsilon_so_far:.4g}{delta}: to plan with, no guarantee"
    for raised in claim.raises:
        yield f"  raised by the owner from ε = {raised.before:g} to ε = {raised.epsilon:g} at {raised.time}"
    for run in one.runs:
        wasted = f", {run.wasted} of them perhaps never sent" if run.wasted else ""
        yield f"    run {run.run}: {run.spent:.6g} in {count(run.releases, 'release')}{wasted}"
    yield f"  covers {claim.covers}"
    for channel in claim.uncovered:
        yield f"  does not cover {channel}"


def _raise(epsilon: float, data: str, state_dir: Path, ledgers: Path | None) -> None:
    """Write the owner's word into the ledger of these data.

    Raises:
        ConfigError: It is not said of which data, or nothing would be raised.
        LedgerError: There is no such ledger, or a client at work holds it.
    """
    from client.data.sources import fingerprint
    from client.privacy.places import witness_path
    from client.privacy.raising import raise_to
    from client.privacy.witness import Witness

    if not data:
        raise ConfigError("say --data: the data file or folder whose budget is raised")
    found = _of_data(data, state_dir, ledgers)
    if not found:
        raise ConfigError(
            "nothing was ever spent of these data, so nothing is fixed; say max-epsilon in the policy file"
        )
    witness = Witness(witness_path(state_dir, fingerprint(data, (0, 1), 0)))
    for row in raise_to(found[0], epsilon, witness):
        what = f"unit {row.unit}: ε = {row.raised.epsilon:g} instead of {row.raised.before:g}"
        o.console.print(f"{what}, once max-epsilon in the client's policy file says so too", soft_wrap=True)


def _of_data(data: str, state_dir: Path, ledgers: Path | None) -> list[Path]:
    """The ledger of these data, if they ever had one.

    Raises:
        DataError: There are no such data.
        LedgerError: They had one which is gone.
    """
    from client.data.sources import fingerprint, is_demo
    from client.privacy.places import data_path, find_ledger

    if not is_demo(data) and not data_path(data).exists():
        raise DataError("no such file or folder", data)
    path = find_ledger(data, state_dir, fingerprint(data, (0, 1), 0), ledgers)
    return [path] if path.exists() else []


def _known(state_dir: Path) -> Iterator[Path]:
    """Every ledger that a state folder remembers."""
    from client.privacy.places import LINEAGES
    from client.privacy.witness import Witness

    for root in (state_dir, *(LOCAL / "up").glob("*/client-*/state")):
        for path in sorted((root / LINEAGES).glob("*.json")):
            if seen := Witness(path).read():
                yield Path(seen.ledger)
