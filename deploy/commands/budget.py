"""`budget`: what the privacy ledgers on this machine say, and the owner's word that more may be spent."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from common.errors import ConfigError, DataError, LedgerError
from common.privacy.claims import UNBOUNDED
from common.text import count
from deploy.cli import options as o
from deploy.commands.launch import LOCAL, STATE

if TYPE_CHECKING:
    from client.privacy.claim import Statement
    from client.privacy.ledger.rollback import RollbackRecord


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
    json: o.AsJson = False,
) -> None:
    """What was spent of the privacy of these data, by which runs, what is left, and what may be claimed.

    The guarantee is that of the whole budget, fixed beforehand: the ε of what was spent so far is there to plan with.
    The limit is the smaller of max-epsilon in the policy file and of what the ledger holds since the first release. To lower
    it, change the file; to raise it, say --raise-to EPS and change the file. The ledger keeps when it was raised, and says so.
    """
    if raise_to is not None:
        _raise(raise_to, data, state_dir, ledgers)
    found, broken = _told(data, state_dir, ledgers)
    if json:
        o.print_object([as_json(one) for one in found])
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
        if claim.beside:
            yield f"  nothing more leaves under unit {claim.unit}: a limit over all runs is of one unit, and there are two"
        yield "  to lower that, say a smaller max-epsilon in the policy; to raise it, fedloom budget --data DATA --raise-to EPS"
    else:
        yield f"  spent {claim.spent:.6g} ({claim.account}); no limit over all runs is set (max-epsilon in the policy)"
    if claim.spent > claim.total:
        yield "  more had left than the limit set since allows: nothing does any more, and the guarantee is that of before"
    yield f"  what was spent comes to ε = {claim.epsilon_so_far:.4g}{delta}: to plan with, no guarantee"
    for raised in claim.raises:
        first = raised.before >= UNBOUNDED
        done = "limited by the owner" if first else f"raised by the owner from ε = {raised.before:g}"
        yield f"  {done} to ε = {raised.epsilon:g} at {raised.time}"
    for run in one.runs:
        wasted = f", {run.wasted} of them perhaps never sent" if run.wasted else ""
        yield f"    run {run.run}: {run.spent:.6g} in {count(run.releases, 'release')}{wasted}"
    yield f"  covers {claim.covers}"
    for channel in claim.uncovered:
        yield f"  does not cover {channel}"


def _told(data: str, state_dir: Path, ledgers: Path | None) -> tuple[list["Statement"], list[LedgerError]]:
    """Statements, and what is wrong with ledgers that make none."""
    from client.privacy.claim import read_statements
    from client.privacy.ledger.locate import find_all_ledgers  # torch takes seconds; --help need not wait for it

    folders = _folders(state_dir)
    places = list(_of_data(data, state_dir, ledgers) if data else find_all_ledgers(folders))
    broken = [error for error in places if isinstance(error, LedgerError)]
    found: list[Statement] = []
    for path in sorted({path for path in places if isinstance(path, Path)}):
        try:
            found += read_statements(path, folders)
        except LedgerError as error:
            broken.append(error)
    return found, broken


def _raise(epsilon: float, data: str, state_dir: Path, ledgers: Path | None) -> None:
    """Write the owner's word into every ledger of these data.

    Raises:
        ConfigError: It is not said of which data, or nothing would be raised.
        LedgerError: A ledger is gone or behind a witness, or a client at work holds it.
    """
    from client.privacy.claim import read_statements
    from client.privacy.ledger.raise_limit import increase_budget

    if not data:
        raise ConfigError("say --data: the data file or folder whose budget is raised")
    found = _of_data(data, state_dir, ledgers)
    if not found:
        raise ConfigError(
            "nothing was ever spent of these data, so nothing is fixed; say max-epsilon in the policy file"
        )
    for path in found:
        read_statements(path, _folders(state_dir))  # else a raise of an older copy would stop the newest for good
    unraised: list[ConfigError] = []
    for path in found:
        try:
            for row in increase_budget(path, epsilon, _rollback_record(path, data, state_dir)):
                what = f"unit {row.unit}: ε = {row.raised.epsilon:g} instead of {row.raised.before:g}"
                o.console.print(f"{what}, once max-epsilon in the client's policy file says so too", soft_wrap=True)
        except ConfigError as error:
            unraised.append(error)
    if len(unraised) == len(found):
        raise unraised[0]
    for reason in unraised:
        o.console.print(str(reason), soft_wrap=True)


def _rollback_record(ledger: Path, data: str, state_dir: Path) -> "RollbackRecord":
    """One that knows the ledger; of data that no state folder here knows, a new one."""
    from client.data.sources import fingerprint_of_all
    from client.privacy.ledger.locate import absolute_source, rollback_path
    from client.privacy.ledger.rollback import RollbackRecord, read_heads

    known = [witness for witness, seen in read_heads(_folders(state_dir)) if seen.ledger == str(ledger)]
    return (
        known[0] if known else RollbackRecord(rollback_path(state_dir, fingerprint_of_all(data)), absolute_source(data))
    )


def _of_data(data: str, state_dir: Path, ledgers: Path | None) -> list[Path]:
    """The ledgers of these data, and of what `fedloom up` dealt of them.

    Raises:
        DataError: There are no such data.
        LedgerError: They had one which is gone.
    """
    from client.data.sources import fingerprint_of_all, is_demo
    from client.privacy.ledger.locate import data_path, find_ledger
    from deploy import partitioning

    if not is_demo(data) and not data_path(data).exists():
        raise DataError("no such file or folder", data)
    path = find_ledger(data, state_dir, fingerprint_of_all(data), ledgers)
    dealt = [] if is_demo(data) else partitioning.dealt_ledgers(partitioning.DEALT, data)
    return sorted({path, *dealt} if path.exists() else set(dealt))


def _folders(state_dir: Path) -> list[Path]:
    """Of witnesses: the owner's, and those of the federations that `fedloom up` ran here."""
    from client.privacy.ledger.locate import LINEAGES
    from deploy import partitioning

    roots = (state_dir, partitioning.DEALT / partitioning.STATE, *(LOCAL / "up").glob("*/client-*/state"))
    return [root / LINEAGES for root in roots]
