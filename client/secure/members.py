"""Key of a client as a member of secure sums, and the members that it was shown."""

import logging
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from common.errors import RefusedError, WireError
from common.secure.members import MemberKey, MemberList, SumMember, read_lines, read_members
from common.secure.terms import read_base64
from common.text import count, printable
from common.wire.messages import MembersReply, MembersRequest

if TYPE_CHECKING:
    from client.state import Store

log = logging.getLogger("fedloom.client")

MEMBERS = "members.txt"
"""Name of the document in a run's state: a line for each member, in the order in which they joined."""

CHECK = "sum-check"
"""Name of the document with the key of the checks of helpers' sums."""

NAMED = 8
"""Maximum number of new members that a line of the log names."""


@dataclass(frozen=True)
class Party:
    """Client as a member of a run's sums, and the members that it was shown."""

    client: str
    key: MemberKey
    members: MemberList
    check: bytes = bytes(32)
    """Key of the checks of helpers' sums (`masking.check_sums`)."""


def known_members(store: "Store", run: str) -> MemberList:
    """Return the members of a run's sums that this client was shown."""
    return _read(store.read(run, MEMBERS))


def find_party(store: "Store", run: str, client: str, key: MemberKey) -> Party:
    """Return a client as a member of a run's sums.

    Raises:
        RefusedError: It was not shown the members.
    """
    check = store.read(run, CHECK)
    if not check:
        raise RefusedError("this client was not shown the members of the run's secure sums; nothing was sent")
    return Party(client, key, known_members(store, run), check)


def members_in(state: Path, run: str) -> dict[str, tuple[SumMember, ...]]:
    """Return client -> members of a run's sums that it was shown, of the clients of a state folder."""
    paths = [path for path in sorted(state.glob(f"*/*/*/{MEMBERS}")) if path.parent.name == run]
    return {path.parents[2].name: _read(path.read_bytes()).members for path in paths}


def show_members(run: str, store: "Store", request: MembersRequest) -> MembersReply:
    """Store further members of a run's sums; a list that begins beyond the known ones changes nothing.

    Raises:
        WireError: A card is malformed, not signed by its identity, or of another run.
        RefusedError: A name has another key than before, a key another name, or the list another order.
    """
    if len(check := read_base64(request.check, "members: check")) != 32:
        raise WireError("members: check is no key of 32 bytes")
    if store.read(run, CHECK) != check:
        store.write(run, CHECK, check)
    shown, newcomers = known_members(store, run), read_members(request.cards, run)
    if request.start <= len(shown.members):
        before = shown.members[request.start :]
        if newcomers[: len(before)] != before[: len(newcomers)]:
            raise RefusedError("the members of this run are not those that this client was shown before")
        grown = _grow(shown, newcomers)
        if len(grown.members) > len(shown.members):
            names = ", ".join(printable(one.name, 80) for one in grown.members[len(shown.members) :][:NAMED])
            about = printable(run, 80), count(len(grown.members), "member"), names, printable(run, 80)
            log.info("run %s: secure sums of %s, the new ones %s; fedloom members %s shows their keys", *about)
            store.write(run, MEMBERS, "\n".join(one.line for one in grown.members).encode())
            shown = grown
    return MembersReply(len(shown.members), shown.digest)


@lru_cache(maxsize=4)  # clients of one process are shown the same
def _read(content: bytes) -> MemberList:
    return read_lines(content.decode().splitlines())


@lru_cache(maxsize=4)
def _grow(shown: MemberList, newcomers: tuple[SumMember, ...]) -> MemberList:
    return shown.grow(newcomers)
