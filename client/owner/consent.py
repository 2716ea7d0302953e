"""Consent of an owner: the contract of a client with each server, stored in the client's state."""

import json
import logging
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from client.owner.journal import lock_folder
from common.contract import Channel, Contract, describe_beyond, side_by_side
from common.errors import RefusedError, StateError
from common.files import write_atomically

FILE = "consent.json"
"""Name of the file in a client's state."""

FIRST_OFFER, BY_POLICY, BY_OWNER = "first offer", "policy", "fedloom accept"
"""Ways of an agreement without an invitation."""

if TYPE_CHECKING:
    from client.owner.policy import Policy

_log = logging.getLogger("fedloom.node")


class Agreement(BaseModel):
    """Terms that an owner has agreed to, with the time (UTC) and the way of the agreement."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    terms: Contract
    by: str
    time: str


class ServerConsent(BaseModel):
    """Agreements with one server, oldest first, and the terms that it offered beyond the newest."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    agreed: tuple[Agreement, ...] = ()
    offered: Contract | None = None


class ConsentFile(BaseModel):
    """Content of the file: identity of a server -> agreements."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    servers: dict[str, ServerConsent] = {}


class Consent:
    """Contract of one client with one server; the newest agreement is the most that the client does.

    Without a folder there is no contract, as in simulations, whose owner has both sides. With `follows_policy`, each run that
    the policy allows is agreed to.
    """

    def __init__(self, folder: Path | None = None, server: str = "", *, follows_policy: bool = False) -> None:
        self._folder, self.server, self._follows_policy = folder, server, follows_policy
        self._newest: Agreement | None = None
        self._next: Contract | None = None
        self._is_read = False

    @property
    def contract(self) -> Contract | None:
        """Terms in force; None before the first agreement."""
        if not self._is_read:
            self.read()
        return self._newest.terms if self._newest else None

    @property
    def hash(self) -> str:
        """Hash of the terms in force; empty without a contract."""
        return self.contract.hash if self.contract else ""

    @property
    def pinned(self) -> tuple[str, ...]:
        """Keys of helpers that the owner has seen and agreed to."""
        is_seen = self.contract and self._newest and self._newest.by not in (FIRST_OFFER, BY_POLICY)
        return self._newest.terms.helpers if is_seen and self._newest else ()

    def check(self, offered: Contract) -> None:
        """Accept terms within the contract; the first ones of a server become it with `settle`.

        Raises:
            RefusedError: They ask for more, or protect less, than the owner has agreed to.
            StateError: The file cannot be read or written.
        """
        if self._folder is None:
            return
        stored = self.read()
        self._next = offered if self._follows_policy or not stored.agreed else None
        if self._next or not offered.beyond(agreed := stored.agreed[-1].terms):
            return
        if stored.offered != offered:
            self._change(lambda one: one.model_copy(update={"offered": offered}))
            table = "\n".join(side_by_side(agreed, offered))
            _log.warning("the server offers terms beyond the agreed ones; fedloom accept agrees to them\n%s", table)
        raise RefusedError(
            f"the owner of this client has not agreed to these terms: {describe_beyond(agreed, offered)}; the owner can agree"
            " with fedloom accept, or by a new invitation"
        )

    def settle(self) -> None:
        """Agree to the last checked terms if no others are agreed to: the client takes part in their run.

        Raises:
            StateError: The file cannot be read or written.
        """
        if self._next and self._next != self.contract:
            self.agree(self._next, BY_POLICY if self._follows_policy else FIRST_OFFER)

    def agree(self, terms: Contract, by: str) -> None:
        """Store an agreement; from now on its terms are the contract.

        Raises:
            StateError: The file cannot be read or written.
        """
        agreement = Agreement(terms=terms, by=by, time=datetime.now(UTC).isoformat(timespec="seconds"))
        self._change(lambda one: ServerConsent(agreed=(*one.agreed, agreement)))
        self._newest, self._is_read = agreement, True
        if by in (FIRST_OFFER, BY_POLICY):
            _log.info("agreed to the terms %s (%s)\n%s", terms.short_hash, by, "\n".join(terms.lines()))

    def read(self) -> ServerConsent:
        """Return the stored agreements with this server.

        Raises:
            StateError: The file is damaged, or of a newer version.
        """
        stored = (
            read_consent(self._folder).servers.get(self.server, ServerConsent()) if self._folder else ServerConsent()
        )
        self._newest, self._is_read = stored.agreed[-1] if stored.agreed else None, True
        return stored

    def _change(self, change: Callable[[ServerConsent], ServerConsent]) -> None:
        if self._folder is None:
            return
        path = self._folder / FILE
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with lock_folder(self._folder):
                servers = read_consent(self._folder).servers
                changed = change(servers.get(self.server, ServerConsent()))
                content = ConsentFile(servers={**servers, self.server: changed}).model_dump(mode="json")
                write_atomically(path, json.dumps(content, indent=1).encode(), mode=0o600)
        except OSError as error:
            raise StateError(f"cannot write {path}: {error.strerror}; make it writable for this user") from None


def read_consent(folder: Path) -> ConsentFile:
    """Return the agreements of a client; none without a file.

    Raises:
        StateError: The file is damaged, or of a newer version.
    """
    path = folder / FILE
    try:
        return ConsentFile.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return ConsentFile()
    except (OSError, ValidationError) as error:
        reason = str(error).splitlines()[0]
        raise StateError(f"{path} cannot be read ({reason}); restore it, or move it away to agree anew") from None


def consents_in(state: Path) -> Iterator[tuple[str, Consent]]:
    """Yield name and consent of each client and server of a state folder."""
    for path in sorted(state.glob(f"*/{FILE}")):
        for server in read_consent(path.parent).servers:
            yield path.parent.name, Consent(path.parent, server)


def worst_of(policy: "Policy") -> Contract:
    """Return the terms of a run that ask for the most, and protect the least, of all that a policy allows."""
    is_exact, is_alone = not policy.require_noise, "local" in policy.trust
    sent: dict[Channel, bool] = {
        "item ids": is_exact,
        "metrics": policy.share_metrics == "always"
        or (policy.share_metrics == "without_noise" and is_exact and is_alone),
        "names": policy.allow_names == "clear" and is_alone,
        "number of records": is_exact and is_alone,
        "statistics": policy.allow_counts == "clear" and is_exact and is_alone,
        "updates": is_exact and is_alone,
    }
    unit = "none" if is_exact or not policy.units else policy.units[0]
    is_limited = unit != "none" and policy.max_epsilon < float("inf")
    return Contract(
        tasks=policy.tasks,
        methods=policy.methods,
        local_steps=policy.max_local_steps or None,
        unit=unit,
        epsilon=policy.max_epsilon if is_limited else None,
        delta=policy.delta if is_limited else None,
        trust=policy.trust,
        helpers=tuple(sorted(policy.helpers.values())),
        min_sum=1 if is_alone else policy.min_sum,
        plaintext=tuple(channel for channel, is_sent in sent.items() if is_sent),
    )
