"""Frames of the door's streams: their limits, and contents in chunks."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, fields

from common.door.door_pb2 import Chunk
from common.errors import ConfigError, WireError

SERVE, ADMIT = "/fedloom.door.v1.Door/Serve", "/fedloom.door.v1.Door/Admit"
"""Methods of the service."""

FORWARDED, FORWARDED_PEER = "fedloom-certificate-bin", "fedloom-peer"
"""Metadata of a call that another door passes on: certificate and address of its client."""

PROTOCOL = 3
"""Version of the frames."""

ORDERS = "/fedloom/door/orders"
"""Path at which the SuperLink's process takes orders of its ServerApps."""

RENEWAL = "renewal"
"""Capability of a client that takes a new certificate on its stream."""

ADMIT_BYTES = 2048
"""Bytes of a request for admission."""

ELSEWHERE = -1
"""Code of the door's answer for a node of Flower's own, which the ServerApp must ask itself."""

CHUNK_BYTES = 256 * 2**10
"""Bytes of a chunk; only the last one of a content has fewer."""

MEGABYTE = 10**6

MOST_VARIABLE = "FEDLOOM_MOST_UPLOAD"
"""Environment variable with the largest message in MB."""


@dataclass(frozen=True)
class DoorLimits:
    """Limits of a door, and of a client towards its server.

    Each field has its unit and its meaning as metadata, which `fedloom serve --limits` and the page of the wire print.
    """

    message_mb: int = field(
        default=256, metadata={"unit": "MB", "about": f"a request or a reply at most ({MOST_VARIABLE})"}
    )
    frame_kb: int = field(default=300, metadata={"unit": "KiB", "about": "one frame; refused before it is read"})
    frames: float = field(default=100.0, metadata={"unit": "1/s", "about": "frames of a key that no request awaits"})
    burst: int = field(default=400, metadata={"unit": "", "about": "such frames of a key at once"})
    barred: float = field(
        default=10.0,
        metadata={"unit": "s", "about": "pause of a key that sent more, or no frames; doubles, up to 8 times"},
    )
    joins: float = field(default=0.2, metadata={"unit": "1/s", "about": "streams that a key opens"})
    join_burst: int = field(default=10, metadata={"unit": "", "about": "such streams at once"})
    admit: float = field(default=20.0, metadata={"unit": "1/s", "about": "requests for admission from an address"})
    admit_burst: int = field(default=1000, metadata={"unit": "", "about": "such requests at once"})
    admit_all: int = field(default=5, metadata={"unit": "", "about": "times as many from all addresses"})
    certificate: float = field(
        default=30.0, metadata={"unit": "d", "about": "life of a node's certificate; renewed in its last third"}
    )
    flow_mb: int = field(
        default=64, metadata={"unit": "MB/s", "about": "bytes of a key beyond a message; read no faster"}
    )
    hello: float = field(default=10.0, metadata={"unit": "s", "about": "TLS handshake, and again first frame"})
    handshakes: int = field(
        default=20, metadata={"unit": "", "about": "an address's connections without a call; 3 s later it has no more"}
    )
    body: float = field(default=60.0, metadata={"unit": "s", "about": "chunks of a reply, besides those of the pace"})
    pace_kb: int = field(default=64, metadata={"unit": "KiB/s", "about": "slowest body beyond that time"})
    silence: float = field(default=15.0, metadata={"unit": "s", "about": "time without a frame that ends a stream"})
    keepalive: float = field(default=20.0, metadata={"unit": "s", "about": "pings of an idle connection"})
    request_mb: int = field(default=32, metadata={"unit": "MB", "about": "at a client: a request without a model"})
    waiting: int = field(default=64, metadata={"unit": "", "about": "at a client: requests that wait"})
    streams: int = field(default=2, metadata={"unit": "", "about": "streams of a connection"})
    door_streams: int = field(default=5000, metadata={"unit": "", "about": "streams of the connection of another door"})

    @property
    def message_bytes(self) -> int:
        """Largest message in bytes."""
        return self.message_mb * MEGABYTE

    def body_seconds(self, size: int) -> float:
        """Return the time in which a body must arrive."""
        return self.body + size / (self.pace_kb * 2**10)

    def channel_options(self) -> list[tuple[str, int]]:
        """Return what both ends of a connection tell gRPC: no compression, and no frame beyond the limit."""
        return [
            ("grpc.max_receive_message_length", self.frame_kb * 2**10),
            ("grpc.max_send_message_length", self.frame_kb * 2**10),
            ("grpc.compression_enabled_algorithms_bitset", 1),
            ("grpc.keepalive_time_ms", round(self.keepalive * 1000)),
            ("grpc.keepalive_timeout_ms", round(self.keepalive * 500)),
            ("grpc.keepalive_permit_without_calls", 1),
        ]

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Yield name, value with its unit, and meaning of each limit."""
        for one in fields(self):
            value = f"{getattr(self, one.name):g} {one.metadata['unit']}".rstrip()
            yield one.name, value, one.metadata["about"]


@dataclass
class Rate:
    """Amount that a sender may send now: a bucket that fills itself.

    Args:
        rate: Amount a second.
        burst: Amount at once.
    """

    rate: float
    burst: float
    left: float = 0.0
    at: float = -1e9

    def spend(self, amount: float) -> float:
        """Count an amount; return the seconds by which it is too early."""
        now = time.monotonic()
        self.left, self.at = min(self.left + (now - self.at) * self.rate, self.burst) - amount, now
        return max(-self.left / self.rate, 0.0)

    def take(self) -> bool:
        """Count one if it may be sent now; return False, and count nothing, if it is too early."""
        self.spend(0.0)
        if self.left < 1:
            return False
        self.left -= 1
        return True


def read_limits() -> DoorLimits:
    """Return the limits with the largest message that the environment sets.

    Raises:
        ConfigError: It has another value than a number of MB.
    """
    text = os.environ.get(MOST_VARIABLE) or str(DoorLimits.message_mb)
    if not text.isdecimal() or not int(text):
        raise ConfigError(f"{MOST_VARIABLE}={text} is no number of MB; leave it out for {DoorLimits.message_mb}")
    return DoorLimits(message_mb=int(text))


def first_bytes(content: bytes) -> bytes:
    """Return the bytes of a content that its first frame has."""
    return content[:CHUNK_BYTES]


def further_chunks(content: bytes) -> Iterator[Chunk]:
    """Yield the chunks that follow a first frame with bytes."""
    return chunks_of(content, CHUNK_BYTES)


def chunks_of(content: bytes, start: int = 0) -> Iterator[Chunk]:
    """Yield a content from a position on in chunks."""
    for at in range(start, len(content), CHUNK_BYTES):
        yield Chunk(data=content[at : at + CHUNK_BYTES])


class Assembly:
    """Content that arrives in chunks; one that is not wanted is counted and dropped.

    Args:
        size: Announced bytes.
        first: Bytes of the first frame; none if all of them follow in chunks.
        wanted: False for a content that is dropped.

    Raises:
        WireError: The first frame has other bytes than it must have.
    """

    def __init__(self, size: int, first: bytes, *, wanted: bool = True) -> None:
        self._size, self._received, self._wanted = size, 0, wanted
        self._chunks: list[bytes] = []
        if first or not size:
            self._take(first)

    def add(self, chunk: Chunk) -> None:
        """Add the next chunk.

        Raises:
            WireError: It is too short, too long, or one too many.
        """
        if self.is_complete:
            raise WireError("a chunk without a message")
        self._take(chunk.data)

    @property
    def is_complete(self) -> bool:
        """True if all bytes are here."""
        return self._received == self._size

    @property
    def content(self) -> bytes:
        """All bytes; empty if they were dropped."""
        return b"".join(self._chunks)

    def _take(self, data: bytes) -> None:
        if len(data) != min(self._size - self._received, CHUNK_BYTES):
            raise WireError(f"a chunk of {len(data):,} bytes where {self._size - self._received:,} are left")
        self._received += len(data)
        if self._wanted:
            self._chunks.append(data)
