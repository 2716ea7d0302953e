"""Store the ledger's head outside the ledger, to detect deletion, roll-back or replacement."""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from common.errors import LedgerError
from common.files import write_atomically

SIZE = 2048
"""Fixed size of a record in bytes.

One write within one page overwrites it in place, so it is never torn.
"""


@dataclass(frozen=True)
class LedgerHead:
    """State of a ledger after its newest row."""

    lineage: str
    ledger: str
    """Path of the ledger at that time."""
    sequence: int = 0
    """Sequence number of the newest row."""
    link: str = ""
    """Link of the newest row."""
    spent: tuple[tuple[str, float], ...] = ()
    """Sum of costs by unit."""
    data: str = ""
    """Path of the data at that time."""

    @property
    def public(self) -> str:
        """Part that servers may see, `lineage:sequence:link`."""
        return f"{self.lineage}:{self.sequence}:{self.link}"


@dataclass(frozen=True)
class RollbackRecord:
    """File `<state>/lineages/<fingerprint of the data>.json`.

    It is written after each charge, without fsync. A record may therefore fall behind its ledger, which is harmless. It is
    never ahead of the ledger.

    Args:
        path: Path of the file.
        data: Path of the data; empty for readers, which do not write.
    """

    path: Path
    data: str = ""

    def read(self) -> LedgerHead | None:
        """Return the stored head; None if the data never had a ledger.

        Raises:
            LedgerError: The record is damaged.
        """
        try:
            fields = json.loads(self.path.read_bytes())
            spent = tuple((str(unit), float(amount)) for unit, amount in fields.pop("spent"))
            return LedgerHead(**fields, spent=spent)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise LedgerError(
                f"cannot read the roll-back record {self.path} ({error}); move it away once `fedloom budget --data DATA "
                "--state NEW-FOLDER` shows all that was spent"
            ) from None

    def write(self, head: LedgerHead) -> None:
        """Replace the stored head.

        Raises:
            LedgerError: The file cannot be written.
        """
        content = json.dumps({**asdict(head), "data": self.data}).encode().ljust(SIZE)
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
                f"cannot write {self.path}: {error.strerror}; nothing was released; make it writable for this user"
            ) from None


def read_heads(folders: Iterable[Path]) -> list[tuple[RollbackRecord, LedgerHead]]:
    """Return all roll-back records in these folders with their heads.

    Raises:
        LedgerError: A record is damaged.
    """
    records = [RollbackRecord(path) for folder in folders for path in sorted(folder.glob("*.json"))]
    return [(replace(record, data=head.data), head) for record in records if (head := record.read())]
