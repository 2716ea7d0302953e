"""A ledger beside what its witness remembers of it, inside a transaction of the caller's."""

from sqlite3 import Connection

from client.privacy import queries
from client.privacy.book import Book
from client.privacy.witness import Sighting, Witness
from common.errors import LedgerError


def compare(db: Connection, book: Book, witness: Witness | None) -> None:
    """Accept a file that has all that the witness has seen.

    Raises:
        LedgerError: It lacks some of it.
    """
    seen = witness.read() if witness else None
    if seen and (seen.lineage, seen.link) != (book.lineage, queries.link_at(db, seen.sequence)):
        raise LedgerError(
            f"privacy ledger {book.path} lacks releases that {witness and witness.path} has seen: "
            "it is an older copy, or another ledger. Put the newest back; nothing was released"
        )


def sighting(db: Connection, book: Book) -> Sighting:
    """What a witness is to remember."""
    return Sighting(book.lineage, str(book.path), *queries.newest(db), queries.spent_by_unit(db))
