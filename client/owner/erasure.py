"""Deletion of the private state that a client keeps of its runs, and the owner's receipt."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from client.checks import ABOUT
from client.privacy.ledger.locate import LINEAGES, find_all_ledgers
from common.errors import LedgerError
from common.files import write_atomically

STAYS = (
    "privacy ledgers and their roll-back records: what was released stays spent, also for runs that are forgotten",
    "the journal of requests (journal.jsonl), the owner's own record; delete it when you need it no more",
    "the key of the client, which the server refuses once it has forgotten the client",
)
"""Files that are not deleted, each with the reason."""


@dataclass(frozen=True)
class Forgetting:
    """Request to one server."""

    client: str
    server: str
    delivered: bool


@dataclass(frozen=True)
class OwnerReceipt:
    """Receipt of a client that asked to be forgotten.

    Args:
        time: Time of the deletion, UTC.
        requests: Requests to servers.
        deleted: Client -> runs whose state was deleted on this machine.
        stays: What stays, and why.
    """

    time: str
    requests: Sequence[Forgetting]
    deleted: dict[str, list[str]]
    stays: Sequence[str] = STAYS


def delete_state(folder: Path) -> dict[str, list[str]]:
    """Delete the state of all runs in a state folder, and return client -> runs.

    Replies that could be sent again are deleted, too: a repeated request would be charged again. Privacy ledgers stay.
    """
    found: dict[str, list[str]] = {}
    for about in sorted(folder.rglob(ABOUT)):
        for run in sorted(path for path in about.parent.iterdir() if path.is_dir()):
            shutil.rmtree(run)
            found.setdefault(about.parent.parent.relative_to(folder).as_posix(), []).append(run.name)
    for ledger in find_all_ledgers([folder / LINEAGES]):
        if not isinstance(ledger, LedgerError):
            shutil.rmtree(f"{ledger}-kept", ignore_errors=True)
    return found


def write_owner_receipt(folder: Path, receipt: OwnerReceipt) -> Path:
    """Write a receipt to a state folder, for its owner only; return the file."""
    stamp = receipt.time[:19].translate(str.maketrans("", "", ":-"))
    path = folder / f"forgotten-{stamp}.json"
    write_atomically(path, json.dumps(asdict(receipt), indent=2).encode() + b"\n", mode=0o600)
    return path
