"""Attacks on the door of a running federation.

`python -m studies.faults.attacks KIND PORT CA KEY` attacks until it is killed.

Strangers have an address of their own. They have no certificate, or one under the server's `ca.pem` for a key that nobody
registered. Other attackers hold the registered key of a node.
"""

import itertools
import os
import random
import socket
import ssl
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import grpc
from cryptography.hazmat.primitives.asymmetric import ec

from common.door.door_pb2 import AdmitReply, Chunk, ClientFrame, Heartbeat, Hello, Reply, ServerFrame, Task, Welcome
from common.door.frames import PROTOCOL, SERVE, first_bytes, further_chunks
from common.door.identity import CURVE, issuer_of, newcomers_of, node_certificate, private_pem
from deploy.keys.certificates import Certificates
from deploy.keys.nodes import load_private_key

HOST, STRANGER = "127.0.0.1", "127.0.0.66"
CALLS, CONNECTIONS, HANDSHAKES, BODIES = 1_100, 3_000, 300, 50
LARGE_BYTES = 250 * 10**6
SLOW_BYTES = 10**6  # a size that the door takes of a reply to an invitation
BOMB_BYTES = 512 * 2**20  # half a MB of gzip
BLOCK_BYTES = 16_384  # of a frame of HTTP/2, at most
DATA, HEADERS, SETTINGS, END_HEADERS = 0, 1, 4, 4
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HELLO = ClientFrame(hello=Hello(protocol=PROTOCOL, version="1")).SerializeToString()
BEAT = ClientFrame(heartbeat=Heartbeat()).SerializeToString()
CLIENT_HELLO = bytes.fromhex("16030102000100")  # of 512 bytes, and their beginning
UNLIMITED = (("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1))


class Target:
    """Door, and the certificates and the key that an attacker has.

    Args:
        port: Port of the door.
        ca: Path of the server's `ca.pem`.
        key: Path of a registered key.
    """

    def __init__(self, port: int, ca: Path, key: Path) -> None:
        self.port, self.files, self.ca = port, Certificates(ca.parent), ca.read_bytes()
        self._registered, self._stranger = load_private_key(key), ec.generate_private_key(CURVE)

    def connect(self) -> socket.socket:
        """Return a connection from the strangers' address."""
        return socket.create_connection((HOST, self.port), 5.0, (STRANGER, 0))

    def encrypt(self, *, certified: bool = True) -> ssl.SSLSocket:
        """Return such a connection after its handshake, as a stranger with or without a certificate."""
        context = ssl.create_default_context(cadata=self.ca.decode())
        context.set_alpn_protocols(["h2"])
        if certified:
            with tempfile.NamedTemporaryFile() as file:
                file.write(b"".join(node_certificate(self.ca, self._stranger)))
                file.flush()
                context.load_cert_chain(file.name)
        tls = context.wrap_socket(self.connect(), server_hostname=HOST)
        tls.sendall(PREFACE + frame(SETTINGS, b"", 0))
        return tls

    def certify(self) -> bytes:
        """Return a certificate for the registered key as the server issues it."""
        issuer, end = issuer_of(self.files.server_key.read_bytes()), datetime.now(UTC) + timedelta(days=1)
        return issuer.certify(self._registered.public_key(), end)

    def call(self, frames: Iterable[bytes]) -> Iterator[ServerFrame]:
        """Yield what the door sends to a stream of the registered key until it ends."""
        credentials = grpc.ssl_channel_credentials(self.ca, private_pem(self._registered), self.certify())
        with grpc.secure_channel(f"{HOST}:{self.port}", credentials, UNLIMITED) as channel, suppress(grpc.RpcError):
            for content in channel.stream_stream(SERVE)(iter(frames)):
                yield ServerFrame.FromString(content)


def frame(kind: int, content: bytes, stream: int, flags: int = 0) -> bytes:
    """Return a frame of HTTP/2."""
    return len(content).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + content


def call_headers(stream: int, *further: tuple[str, str]) -> bytes:
    """Return the headers of a call of the door, whose body is open."""
    headers = ((":method", "POST"), (":scheme", "https"), (":path", SERVE), (":authority", HOST), ("te", "trailers"))
    pairs = (*headers, ("content-type", "application/grpc"), *further)
    text = b"".join(b"\0" + b"".join(bytes((len(one),)) + one.encode() for one in pair) for pair in pairs)
    return frame(HEADERS, text, stream, END_HEADERS)


def message(content: bytes, stream: int, size: int, *, compressed: bool = False) -> bytes:
    """Return the frames of HTTP/2 for the beginning of a message of gRPC."""
    whole = bytes((compressed,)) + size.to_bytes(4, "big") + content
    starts = range(0, len(whole), BLOCK_BYTES)
    return b"".join(frame(DATA, whole[start : start + BLOCK_BYTES], stream) for start in starts)


def is_open(connection: socket.socket) -> bool:
    """Return True unless the door has closed a connection."""
    try:
        connection.settimeout(0)
        return bool(connection.recv(65_536))
    except (BlockingIOError, ssl.SSLWantReadError):
        return True
    except OSError:
        return False


def hold(connect: Callable[[], socket.socket], number: int, first: bytes, later: bytes) -> Iterator[None]:
    """Hold so many connections open, which send `first`, and then `later` twice a second."""
    held: list[socket.socket] = []
    try:
        while True:
            for closed in [one for one in held if not is_open(one)]:
                closed.close()
                held.remove(closed)
            with suppress(OSError):
                while len(held) < number:
                    held.append(connect())
                    held[-1].sendall(first)
            for one in held if later else ():
                with suppress(OSError):
                    one.send(later)
            yield
            time.sleep(0.5)
    finally:
        for one in held:
            one.close()


def repeat(send: Callable[[], Iterable[bytes]], connect: Callable[[], socket.socket]) -> Iterator[None]:
    """Connect, send, and read until the door ends the connection, at most a second; and again."""
    while True:
        with suppress(OSError), connect() as connection:
            for content in send():
                connection.sendall(content)
            connection.settimeout(1.0)
            while connection.recv(65_536):
                pass
        yield


def mutate(content: bytes, rng: random.Random) -> bytes:
    """Return bytes with up to four of them changed, every second time cut off."""
    mutated = bytearray(content)
    for _ in range(rng.randint(0, 4)):
        mutated[rng.randrange(len(mutated))] = rng.randrange(256)
    return bytes(mutated[: rng.choice((len(mutated), rng.randint(1, len(mutated))))])


def send_garbage(target: Target) -> Iterator[None]:
    """Send random bytes, and mutated frames of HTTP/2."""
    rng, good = random.Random(0), call_headers(1) + message(HELLO, 1, len(HELLO))
    noise = repeat(lambda: [rng.randbytes(rng.randint(1, 2_000))], target.connect)
    frames = repeat(lambda: [mutate(good, rng)], target.encrypt)
    while True:
        next(noise)
        next(frames)
        yield


def send_mutated(target: Target) -> Iterator[None]:
    """Send mutated frames of the door with the key."""
    rng, reply = random.Random(0), ClientFrame(reply=Reply(task="a", size=3, data=b"abc")).SerializeToString()
    while True:
        for _ in target.call([HELLO, *(mutate(rng.choice((HELLO, reply)), rng) for _ in range(50))]):
            pass
        yield


def send_bombs(target: Target) -> Iterator[None]:
    """Send compressed messages that are a thousand times as large."""
    packer, block = zlib.compressobj(6, wbits=31), bytes(2**20)  # the attacker never holds the whole
    bomb = b"".join(packer.compress(block) for _ in range(BOMB_BYTES // len(block))) + packer.flush()
    content = call_headers(1, ("grpc-encoding", "gzip")) + message(bomb, 1, len(bomb), compressed=True)
    yield from repeat(lambda: [content], target.encrypt)


def send_large(target: Target) -> Iterator[None]:
    """Send messages of 250 MB, whatever the door says."""
    first, block = call_headers(1) + message(b"", 1, LARGE_BYTES), frame(DATA, bytes(BLOCK_BYTES), 1)
    yield from repeat(lambda: [first, *itertools.repeat(block, LARGE_BYTES // BLOCK_BYTES)], target.encrypt)


def answer_tasks(target: Target, size: int, pause: float) -> Iterator[None]:
    """Answer each task by so many bytes, with a pause between chunks, and with a client's heartbeats."""
    content, frames = bytes(size), [HELLO]
    further: Iterator[Chunk] = iter(())

    def send() -> Iterator[bytes]:
        at = 0.0
        while True:
            while frames:
                yield frames.pop(0)
                at = time.monotonic() + pause
            if time.monotonic() >= at and (chunk := next(further, None)):
                yield ClientFrame(chunk=chunk).SerializeToString()
                at = time.monotonic() + pause
            else:
                yield BEAT
                time.sleep(min(pause, 0.5) or 0.01)

    while True:
        for received in target.call(send()):
            if task := received.task.id:
                reply = Reply(task=task, size=size, data=first_bytes(content))
                frames.append(ClientFrame(reply=reply).SerializeToString())
            if received.go.task:
                further = further_chunks(content)
            yield
        frames[:] = [HELLO]
        yield


def flood(target: Target) -> Iterator[None]:
    """Send heartbeats without a pause, and again after each refusal."""
    while True:
        for _ in target.call(itertools.chain([HELLO], itertools.repeat(BEAT, 100_000))):
            yield


def knock(target: Target) -> Iterator[None]:
    """Open streams with the key, eight at a time, and wait for the door's word on each."""
    with ThreadPoolExecutor(8) as threads:
        while True:
            list(threads.map(lambda _: next(target.call([HELLO]), None), range(8)))
            yield


def share_key(target: Target) -> Iterator[None]:
    """Be a second client with a client's key: open a stream, and leave after a second."""

    def frames() -> Iterator[bytes]:
        yield HELLO
        time.sleep(1.0)

    while True:
        for _ in target.call(frames()):
            pass
        yield


def flood_clients(target: Target) -> Iterator[None]:
    """Send tasks of 100 kB without a pause to each client, as its server at this port."""
    task = ServerFrame(task=Task(kind="train", created=2e9, ttl=1e4, size=100_000, data=bytes(100_000)))

    def serve(frames: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        yield ServerFrame(welcome=Welcome(node=1)).SerializeToString()
        for number in itertools.count():
            task.task.id = str(number)
            yield task.SerializeToString()

    def admit(request: bytes, context: grpc.ServicerContext) -> bytes:
        answer: bytes = AdmitReply(certificate=target.certify()).SerializeToString()
        return answer

    service, method = SERVE.strip("/").split("/")
    calls = {method: grpc.stream_stream_rpc_method_handler(serve), "Admit": grpc.unary_unary_rpc_method_handler(admit)}
    handlers = grpc.method_handlers_generic_handler(service, calls)
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((handlers,))
    pairs = [(target.files.server_key.read_bytes(), target.files.server.read_bytes())]
    authorities = newcomers_of(target.ca).pem + issuer_of(target.files.server_key.read_bytes()).pem
    credentials = grpc.ssl_server_credentials(pairs, authorities, require_client_auth=True)
    server.add_secure_port(f"{HOST}:{target.port}", credentials)
    server.start()
    while True:
        yield
        time.sleep(1.0)


ATTACKS: dict[str, Callable[[Target], Iterator[None]]] = {
    "header-only calls": lambda at: repeat(
        lambda: map(call_headers, range(1, 2 * CALLS, 2)), partial(at.encrypt, certified=False)
    ),
    "header-only calls, ca.pem": lambda at: repeat(lambda: map(call_headers, range(1, 2 * CALLS, 2)), at.encrypt),
    "idle connections": lambda at: hold(at.connect, CONNECTIONS, b"", b""),
    "slow handshakes": lambda at: hold(at.connect, HANDSHAKES, CLIENT_HELLO, b"\0"),
    "slow bodies, ca.pem": lambda at: hold(
        at.encrypt, BODIES, call_headers(1) + message(HELLO[:1], 1, len(HELLO)), frame(SETTINGS, b"", 0)
    ),
    "large messages": send_large,
    "gzip bombs": send_bombs,
    "garbage": send_garbage,
    "garbage of a key": send_mutated,
    "flood of a key": flood,
    "large replies of a key": partial(answer_tasks, size=LARGE_BYTES, pause=0.0),
    "slow replies of a key": partial(answer_tasks, size=SLOW_BYTES, pause=3.0),
    "streams of a key": knock,
    "revoked key": knock,
    "two clients with a key": share_key,
    "flood of a server": flood_clients,
}
"""Kind of an attack -> volleys of it."""

STRANGERS = tuple(ATTACKS)[:8]
"""Attacks of strangers, which may cost the rounds a fifth of their pace."""


def main() -> None:
    """Attack; print a line after the first volley."""
    kind, port, ca, key = sys.argv[1:]
    os.setsid()  # attackers have machines of their own, and Linux weighs sessions against each other
    os.setpriority(os.PRIO_PROCESS, 0, 19)
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text("19")  # else its session weighs as much as that of the door
    for number, _ in enumerate(ATTACKS[kind](Target(int(port), Path(ca), Path(key)))):
        if number == 0:
            print(f"begun {kind}", flush=True)


if __name__ == "__main__":
    main()
