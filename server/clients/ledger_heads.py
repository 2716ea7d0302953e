"""Heads of clients' privacy ledgers, kept by key, to notice a ledger that lost releases."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from common.errors import ConfigError, WireError
from common.files import write_atomically
from common.node_names import locked

FILE = "ledgers.json"
REMEDY = "; restore the newest ledger, or ask the server's owner to run fedloom nodes accept-ledger"
log = logging.getLogger("fedloom.server")


@checked_dataclass(frozen=True)
class StoredHead:
    """Newest head of a ledger that the server has seen.

    Args:
        task: Task of the runs with this ledger.
        sequence: Number of its newest row.
        link: Link of that row.
    """

    task: str
    sequence: int
    link: str


Heads = dict[str, dict[str, StoredHead]]
"""Fingerprint of a key -> lineage of a ledger -> its head."""

_FORM = TypeAdapter(Heads)


@dataclass
class LedgerHeads:
    """Check of the heads of ledgers that clients report, at enrolment and with noised replies.

    Args:
        folder: Folder `nodes/` of the server's owner; None if clients have no registered keys.
        task: Task of the run.
        fingerprint: Function from a node to the fingerprint of its key, empty without one.
    """

    folder: Path | None = None
    task: str = ""
    fingerprint: Callable[[int], str] = lambda node: ""
    _newest: Heads = field(default_factory=dict)
    """Fingerprint -> lineage -> head, of the ledgers of this run."""
    _unstored: set[str] = field(default_factory=set)

    def check(self, node: int, head: str) -> None:
        """Accept and store the head that a node reports; an empty one, of a run without noise, is accepted.

        Raises:
            WireError: The ledger lacks releases that an earlier enrolment of its key had, or its head is malformed.
        """
        mark = self.fingerprint(node) if self.folder and head else ""
        if not self.folder or not mark:
            return
        lineage, reported = _parse(head, self.task)
        try:
            with locked(self.folder):
                heads = read_heads(self.folder)
                _require_newer(lineage, reported, heads.get(mark, {}))
                write_heads(self.folder, heads | {mark: heads.get(mark, {}) | {lineage: reported}})
        except (ConfigError, OSError) as error:
            log.warning("%s", error)
            raise WireError("the server cannot read its heads of ledgers; ask the server's owner") from None
        self._newest[mark] = {lineage: reported}

    def note(self, node: int, head: str) -> None:
        """Accept the head in a noised reply of a node; `store` makes it durable.

        Raises:
            WireError: The ledger lacks releases that it had in this run, or its head is malformed.
        """
        mark = self.fingerprint(node) if self.folder else ""
        if not mark:
            return
        lineage, reported = _parse(head, self.task)
        if mark not in self._newest:
            raise WireError("this client reported no privacy ledger when it enrolled")
        _require_newer(lineage, reported, self._newest[mark])
        self._newest[mark] = {lineage: reported}
        self._unstored.add(mark)

    def store(self) -> None:
        """Store the noted heads, before the round with their replies counts.

        Raises:
            ConfigError: The file is damaged, or cannot be written.
        """
        if self.folder is None or not self._unstored:
            return
        try:
            with locked(self.folder):
                heads = read_heads(self.folder)
                for mark in self._unstored:
                    stored = heads.setdefault(mark, {})
                    for lineage, head in self._newest[mark].items():  # another run may have stored a newer one
                        stored[lineage] = max(stored.get(lineage, head), head, key=lambda one: one.sequence)
                write_heads(self.folder, heads)
        except OSError as error:
            raise ConfigError(f"{self.folder / FILE} cannot be written ({error.strerror})") from None
        self._unstored.clear()


def read_heads(folder: Path) -> Heads:
    """Return the stored heads of a folder.

    Raises:
        ConfigError: The file is damaged.
    """
    path = folder / FILE
    try:
        return _FORM.validate_json(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValidationError) as error:
        raise ConfigError(f"{path} cannot be read ({type(error).__name__}); restore it from a backup") from None


def write_heads(folder: Path, heads: Heads) -> None:
    """Replace the stored heads of a folder."""
    write_atomically(folder / FILE, _FORM.dump_json(heads, indent=1), mode=0o600)


def _parse(head: str, task: str) -> tuple[str, StoredHead]:
    lineage, sequence, link = (*head.split(":"), "", "")[:3]
    if len(head) > 200 or not (lineage.isalnum() and sequence.isdecimal()):
        raise WireError("`ledger` in the reply is not a head of a privacy ledger")
    return lineage, StoredHead(task, int(sequence), link)


def _require_newer(lineage: str, reported: StoredHead, stored: dict[str, StoredHead]) -> None:
    """Refuse an older ledger, an altered one, and a new one in place of a used one."""
    if old := stored.get(lineage):
        if reported.sequence < old.sequence:
            raise WireError(
                f"the privacy ledger {lineage[:8]} has {reported.sequence} rows and had {old.sequence}; it is an older"
                f" copy{REMEDY}"
            )
        if reported.sequence == old.sequence and reported.link != old.link:
            raise WireError(f"row {old.sequence} of the privacy ledger {lineage[:8]} was altered{REMEDY}")
        return
    used = [
        f"{name[:8]} with {old.sequence} rows"
        for name, old in stored.items()
        if old.task == reported.task and old.sequence
    ]
    if used:
        raise WireError(
            f"the privacy ledger {lineage[:8]} is new, and this key had ledger {' and '.join(used)}: its data could be spent"
            f" twice{REMEDY}"
        )
