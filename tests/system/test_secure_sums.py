"""Secure sums over TLS: models as in one process, helpers that are killed, and a database without vectors."""

import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Context, Message
from rich.console import Console

from client.app import respond
from client.node.failures import Server
from client.node.resident import run_resident
from client.secure import upload
from client.secure.helper.app import Respond, help_too, make_app
from client.session import Session
from common.arrays import Array, Ints
from common.config.run import RunConfig
from common.wire.codec import decode
from common.wire.messages import TRAIN, TrainReply
from deploy.federation.processes import Processes
from deploy.federation.start import Order, train
from deploy.keys.certificates import Certificates, make_authority, make_server_certificate
from deploy.keys.nodes import load_private_key, make_node_key, public_path
from deploy.superlink.superlink import SuperLinkSettings, free_port
from server.record.result import Result
from tests.support.sum_runs import SumFederation, noised
from tests.system.desk import ROOT, Desk

pytestmark = pytest.mark.system

SAMPLE = 64  # bytes
METHOD = ("--task", "rules", "--method", "ifca")
OPTIONS = (*METHOD, "--data", "demo:0-50", "--clients", "5", "--helpers", "2", "--seed", "3", "--patience", "20")
ROUNDS = "9"


def test_a_killed_helper_costs_at_most_its_open_sum_and_so_does_a_resumed_run(desk: Desk) -> None:
    first = desk.up(*OPTIONS, "--no-alone", "--rounds", ROUNDS, "--run-id", "sums")
    first.wait_for("protect against nobody but outsiders")
    first.wait_for(f"round 1/{ROUNDS}")
    [helper] = [p for p in first.family() if p.is_running() and {"helper", "helper-1"} <= {*p.cmdline()}]
    assert not [one.path for one in helper.memory_maps() if "libtorch" in one.path]
    helper.kill()
    first.wait_for("helper-1 ended with exit code -9; started again")
    first.wait_for(f"round 3/{ROUNDS}")
    assert first.end(signal.SIGINT) == 130
    desk.require_clean(first)

    second = desk.up("--resume", "sums", "--no-alone")
    assert second.end() == 0, second.error()
    result = second.result()
    assert (result["status"], result["rounds_done"]) == ("completed", int(ROUNDS))
    assert list(result["privacy"]["helpers"]) == ["helper-1", "helper-2"]
    assert result["privacy"]["sums"]["lost"] <= 2
    assert result["privacy"]["sums"]["opened"] >= int(ROUNDS)


def test_equal_noise_gives_the_model_of_one_process_and_the_database_holds_no_vector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = {"secure-sums__deadline": 30.0, "federation__wait": 60.0, "secure-sums__wait": 60.0}
    config = noised(method="fedrule", **{"privacy__accept-noise": True, **waits})
    vectors: list[Ints] = []

    def recorded(*arguments: object) -> Ints:
        vectors.append(quantise(*arguments))
        return vectors[-1]

    quantise = upload.quantise
    expected = SumFederation(tmp_path / "here", helpers=1, also=1).run(config)
    monkeypatch.setattr(upload, "quantise", recorded)
    masked, sizes = list[Array](), list[int]()
    stop, found = threading.Event(), [False, False]  # a masked vector, a vector; the ServerApp calls the door

    def search() -> None:
        while not stop.wait(0.01):
            database = _database(tmp_path)
            sizes.append(len(database))
            found[0] |= any(one.tobytes()[:SAMPLE] in database for one in list(masked))
            plain = [_telling(one).astype(kind).tobytes() for one in list(vectors) for kind in (np.uint32, np.int64)]
            found[1] |= any(one in database for one in plain)

    searcher = threading.Thread(target=search)
    searcher.start()
    try:
        result = _run_over_tls(SumFederation(tmp_path / "runs", helpers=1, also=1), config, tmp_path, masked)
    finally:
        stop.set()
        searcher.join()
    assert list(result.privacy.helpers) == ["client-0-helper", "helper-0"]
    assert (result.status, result.privacy.sums) == ("completed", {"opened": 3, "lost": 0})
    assert result.model_sha256 == expected.model_sha256
    assert len(vectors) == len(masked) == 12
    assert found == [False, False]
    assert max(sizes) > 10_000


def _database(folder: Path) -> bytes:
    """Return the bytes of the SuperLink's database and its log of changes."""
    return b"".join(path.read_bytes() for path in (folder / "server").glob("superlink.sqlite*"))


def _telling(vector: Ints) -> Ints:
    """Return the 16 numbers in a row with the most that are not zero."""
    rows = vector[: len(vector) // 16 * 16].reshape(-1, 16)
    found: Ints = rows[np.count_nonzero(rows, axis=1).argmax()]
    assert np.count_nonzero(found) > 4
    return found


def _run_over_tls(federation: SumFederation, config: RunConfig, folder: Path, masked: list[Array]) -> Result:
    """Run clients and helpers as residents in threads; record masked vectors."""

    def upload_of(session: Session, message: Message, context: Context) -> Message:
        reply = respond(session, message)
        if message.metadata.message_type == TRAIN:
            masked.append(decode(TrainReply, reply.content).masked["sum"])
        return reply

    clients: dict[int, Respond] = {node: partial(upload_of, one) for node, one in federation.sessions.items()}
    clients |= {node: help_too(desk, clients[node]) for node, desk in federation.also.items()}
    nodes = [*clients.values(), *(make_app(desk) for desk in federation.desks)]
    make_authority(folder / "server")
    certificates = make_server_certificate(folder / "server")
    environment = {"PYTHONPATH": str(ROOT), "FEDLOOM_RUNS": str(federation.runs)}
    ports = {"port": free_port(), "control_port": free_port()}
    superlink = SuperLinkSettings(
        folder / "server",
        certificates,
        authenticate=True,
        database=True,
        environment=environment,
        own_app=True,
        **ports,
    )
    keys = [folder / f"{number}.key" for number in range(len(nodes))]
    for key in keys:
        make_node_key(key)
    with ExitStack() as stack:
        for key, app in zip(keys, nodes, strict=True):
            stack.enter_context(_resident(superlink.address, certificates, key, app))
        processes = stack.enter_context(Processes())
        order = Order(config, federation.runs, [public_path(key) for key in keys])
        return train(processes, superlink, order, Console(stderr=True))


@contextmanager
def _resident(address: str, certificates: Certificates, key: Path, app: Respond) -> Iterator[None]:
    stop, server = threading.Event(), Server(address, certificates.ca.read_bytes(), load_private_key(key))
    options = {"stop": stop, "patience": 120.0}
    client = threading.Thread(target=run_resident, args=(app, server), kwargs=options, daemon=True)
    client.start()
    yield
    stop.set()
    client.join(10)
