"""What the owner remembers of a ledger elsewhere, to notice one that vanished, went backwards or was exchanged."""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from common.errors import LedgerError
from common.files import write_atomically

SIZE = 2048
"""Bytes of a witness, always: it is overwritten in place by one write within one page, so none is ever half written."""


@dataclass(frozen=True)
class LedgerHead:
    """A ledger as it was last seen."""

    lineage: str
    ledger: str
    """Its path then."""
    sequence: int = 0
    """The highest row."""
    link: str = ""
    """That row's link."""
    spent: tuple[tuple[str, float], ...] = ()
    """What was spent, by unit."""
    data: str = ""
    """What the data were called then."""


@dataclass(frozen=True)
class RollbackRecord:
    """The file `<state>/lineages/<fingerprint of the data>.json`.

    It is written after each reservation without waiting for the disk: a witness may fall behind its ledger, which is in order,
    and never runs ahead of it.

    Args:
        path: Of the file.
        data: What the data are called, for those who read the file and write none.
    """

    path: Path
    data: str = ""

    def read(self) -> LedgerHead | None:
        """What was last seen; None if these data never had a ledger.

        Raises:
            LedgerError: The witness is damaged.
        """
        try:
            fields = json.loads(self.path.read_bytes())
            spent = tuple((str(unit), float(amount)) for unit, amount in fields.pop("spent"))
            return LedgerHead(**fields, spent=spent)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise LedgerError(
                f"{self.path} cannot be read ({error}); once `fedloom budget --data DATA --state NEW-FOLDER` shows all that "
                "was spent, move it away"
            ) from None

    def write(self, seen: LedgerHead) -> None:
        """Replace what was last seen.

        Raises:
            LedgerError: It cannot be written.
        """
        content = json.dumps({**asdict(seen), "data": self.data}).encode().ljust(SIZE)
        try:
            if len(content) > SIZE or not self.path.exists():
                self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                write_atomically(self.path, content, mode=0o600)
                return
            handle = os.open(self.path, os.O_WRONLY)
            try:
                os.pwrite(handle, content, 0)
            finally:
                os.close(handle)
        except OSError as error:
            raise LedgerError(
                f"{self.path}: {error.strerror}; let this user write there. Nothing was released"
            ) from None


def sightings(folders: Iterable[Path]) -> list[tuple[RollbackRecord, LedgerHead]]:
    """What every witness in these folders last saw, of whatever data.

    Raises:
        LedgerError: A witness is damaged.
    """
    found = [RollbackRecord(path) for folder in folders for path in sorted(folder.glob("*.json"))]
    return [(replace(witness, data=seen.data), seen) for witness in found if (seen := witness.read())]
