"""Admission of nodes at the door: certificates for registered keys, tokens, and what a key may send."""

import asyncio
import logging
import math
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from google.protobuf.message import DecodeError

from common.door.door_pb2 import AdmitReply, AdmitRequest, Hello, Notice
from common.door.frames import ADMIT_BYTES, MEGABYTE, PROTOCOL, RENEWAL, DoorLimits, Rate
from common.door.identity import Authority, certified_key, plain_key
from common.errors import FedloomError
from common.node_names import fingerprint, from_pem
from common.refusals import Refusals
from common.text import printable
from deploy.keys.nodes import KeyRefusedError, door_certificate, redeem_token
from deploy.superlink.door_node import DoorNode

log = logging.getLogger("flwr")

MOST_ADDRESSES = 10_000
"""Addresses whose requests are counted; the limit of all addresses holds beyond them."""


class NoticeError(Exception):
    """Refusal, with the reason that the client gets."""

    def __init__(self, kind: Notice.Kind, text: str) -> None:
        super().__init__(text)
        self.kind = kind

    @property
    def notice(self) -> Notice:
        """Frame for the client."""
        return Notice(kind=self.kind, text=str(self))


MOST_PAUSES = 8
"""Longest pause of a barred key, in first ones."""


class Allowance:
    """Frames and bytes that a key may send now."""

    def __init__(self, limits: DoorLimits) -> None:
        self.frames = Rate(limits.frames, limits.burst)
        self.bytes = Rate(limits.flow_mb * MEGABYTE, limits.message_bytes)
        self.joins = Rate(limits.joins, limits.join_burst)
        self.barred_until, self.node = 0.0, 0
        self._first_pause = self._pause = limits.barred

    def bar(self) -> None:
        """Bar the key for a time, which is twice as long if the last one ended lately, up to a limit."""
        if (now := time.monotonic()) > self.barred_until + MOST_PAUSES * self._first_pause:
            self._pause = self._first_pause
        self.barred_until = now + self._pause
        self._pause = min(2 * self._pause, MOST_PAUSES * self._first_pause)

    @property
    def is_barred(self) -> bool:
        """True while the key gets no stream."""
        return time.monotonic() < self.barred_until


class Admission:
    """Admission of nodes.

    Without an issuer the door has no encryption, and without `nodes` the server has no folder of keys and tokens.
    """

    def __init__(
        self, node: DoorNode, issuer: Authority | None, limits: DoorLimits, refusals: Refusals, nodes: Path | None
    ) -> None:
        self._node, self._issuer, self._limits, self._refusals, self._nodes = node, issuer, limits, refusals, nodes
        self._life = timedelta(days=limits.certificate)
        self._rates: dict[str, Rate] = {}
        self._all = Rate(limits.admit * limits.admit_all, limits.admit_burst * limits.admit_all)
        self._thread = ThreadPoolExecutor(1, "door-admission")  # it may wait for the lock of the folder

    def identify(self, hello: Hello, context: Any) -> tuple[bytes, float]:
        """Return a client's key, and the time at which it needs another certificate.

        Raises:
            NoticeError: It has another version, or no valid certificate of this server.
        """
        _check_version(hello)
        if self._issuer is None:
            return plain_key(hello.key), math.inf
        pem = _certificate(context)
        certificate = x509.load_pem_x509_certificate(pem)
        end = certificate.not_valid_after_utc
        if end < datetime.now(UTC) or not self._issuer.has_issued(certificate):  # TLS can resume an older connection
            raise NoticeError(Notice.CERTIFICATE_NEEDED, "this certificate serves to ask for admission only")
        return certified_key(pem), (end - self._life / 3).timestamp() if RENEWAL in hello.capabilities else math.inf

    def certify(self, key: bytes) -> tuple[bytes, float]:
        """Return a certificate for a key, both in PEM, and the time at which it needs another one.

        Raises:
            NoticeError: It is no key of a node.
        """
        now, public, issuer = datetime.now(UTC), from_pem(key), self._issuer
        if public is None or issuer is None:
            raise NoticeError(Notice.MALFORMED, "no key of a node")
        return issuer.certify(public, now + self._life), (now + self._life * 2 / 3).timestamp()

    async def admit(self, frames: object, context: Any) -> None:
        """Answer a request for admission with a certificate or a refusal."""
        request, peer = AdmitRequest(), context.peer()
        try:
            self._limit(peer.rpartition(":")[0])
            request = _parse(await asyncio.wait_for(context.read(), self._limits.hello))
            _check_version(request)
            key = certified_key(_certificate(context))
            reply = AdmitReply(certificate=self._certify_door(key))
            if not reply.certificate:
                await asyncio.get_running_loop().run_in_executor(self._thread, self._register, key, request)
                reply = AdmitReply(certificate=self.certify(key)[0])
        except NoticeError as refusal:
            self.count(refusal, request, context, peer)
            reply = AdmitReply(refusal=refusal.notice)
        await context.write(reply.SerializeToString())

    def _certify_door(self, key: bytes) -> bytes:
        """Return what another door of this server needs; empty if its key is not registered as one."""
        found = door_certificate(self._nodes, key)
        return found + self._issuer.pem if found and self._issuer else b""

    def count(self, refusal: NoticeError, about: Hello | AdmitRequest, context: Any, peer: str) -> None:
        """Count a refusal of a caller, by its class."""
        kind = Notice.Kind.Name(refusal.kind).lower().replace("_", " ")
        key = from_pem(certified_key(_certificate(context)) if self._issuer else plain_key(getattr(about, "key", b"")))
        names = (
            fingerprint(key) if key else "",
            about.name and repr(about.name[:40]),
            about.version and f"fedloom {about.version[:20]}",
        )
        self._refusals.count(f"at the door, {kind}", peer, " ".join(filter(None, names)), str(refusal))

    def _limit(self, address: str) -> None:
        if len(self._rates) >= MOST_ADDRESSES:
            self._rates.clear()
        rate = self._rates.setdefault(address, Rate(self._limits.admit, self._limits.admit_burst))
        if not (rate.take() and self._all.take()):
            raise NoticeError(Notice.TOO_MANY, "too many requests for admission; they are taken again in a moment")

    def _register(self, key: bytes, request: AdmitRequest) -> None:
        """Accept a registered key, or register it by a token.

        Raises:
            NoticeError: It is not registered, and its token does not serve.
        """
        if self._node.is_registered(key):
            return
        public = from_pem(key)
        if public is None or not request.token:
            raise NoticeError(Notice.NOT_ADMITTED, "the key is not registered")
        if self._nodes is None:
            raise NoticeError(Notice.NOT_ADMITTED, "this server takes no tokens of invitations")
        try:
            name = redeem_token(self._nodes, request.token, public)
        except KeyRefusedError as error:
            raise NoticeError(Notice.NOT_ADMITTED, str(error)) from None
        except (FedloomError, OSError) as error:  # a damaged file, a full disk
            log.warning("cannot register the key of an invitation: %s", error)
            raise NoticeError(Notice.NOT_ADMITTED, "the server cannot register keys now; see its log") from None
        if not self._node.register(key):
            raise NoticeError(Notice.NOT_ADMITTED, "the key was revoked")
        log.info("admitted %s by an invitation: %s", printable(name, 80), fingerprint(public))


def _certificate(context: Any) -> bytes:
    """Return the certificate in PEM by which TLS let a caller in."""
    certificate: bytes = context.auth_context()["x509_pem_cert"][0]
    return certificate


def _check_version(about: Hello | AdmitRequest) -> None:
    if about.protocol != PROTOCOL:
        raise NoticeError(Notice.VERSION, f"the server speaks version {PROTOCOL} of the door")


def _parse(content: object) -> AdmitRequest:
    request = AdmitRequest()
    try:
        request.ParseFromString(content if isinstance(content, bytes) and len(content) <= ADMIT_BYTES else b"\xff")
    except DecodeError:
        raise NoticeError(Notice.MALFORMED, "no request for admission") from None
    return request
