"""Helpers of secure sums: the process of `fedloom helper`, and clients that also help; no torch."""

import logging
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec

from client.node import resident
from client.node.failures import LastNode, Server
from client.secure.helper.app import HelperObserver, Respond, help_too, make_app
from client.secure.helper.helper_service import HelperService
from client.secure.helper.helper_state import open_book
from common.node_names import check_name, default_name, fingerprint
from deploy.files import read_file


@dataclass(frozen=True)
class HelperNode:
    """Options of a helper.

    Args:
        server: Address of the server.
        ca: Certificate authority of the server.
        key: Private key of the helper.
        name: Public name; empty for one from the key.
        state_dir: Folder of its book.
        patience: Seconds to wait for admission.
        forget: Days without a message after which a run's keys are deleted.
        most_numbers: Maximum size of a vector.
    """

    server: str
    ca: Path
    key: ec.EllipticCurvePrivateKey
    name: str
    state_dir: Path
    patience: float
    forget: float
    most_numbers: int


def serve_sums(node: HelperNode) -> None:
    """Answer the server until a signal stops the helper.

    Raises:
        ConfigError: An option is wrong.
        ConnectError: Retrying cannot help.
        StateError: The state folder is in use, damaged or from a backup.
    """
    stop = threading.Event()
    resident.leave_on_signals(stop)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", force=True)
    logging.getLogger("flwr").setLevel(logging.WARNING)
    identity = fingerprint(node.key.public_key())
    name = check_name(node.name) if node.name else default_name(identity)
    server = Server(node.server, read_file(node.ca), node.key, LastNode(node.state_dir / "helper.node"))
    with closing(open_book(node.state_dir)) as book:
        app = make_app(HelperService(name, node.key, book, most_numbers=node.most_numbers))
        observer = HelperObserver(node.server, f"helper {name}, {identity}", book, node.forget)
        resident.run_resident(app, server, stop=stop, patience=node.patience, observer=observer)


@contextmanager
def helping_too(name: str, key: ec.EllipticCurvePrivateKey, folder: Path, respond: Respond) -> Iterator[Respond]:
    """Yield the app of a client that also helps.

    Args:
        name: Public name of the helper.
        key: Private key of the node.
        folder: Folder of the client's state; the helper's is below it.
        respond: App of the client alone.
    """
    with closing(open_book(folder / "helper")) as book:
        yield help_too(HelperService(name, key, book, serves="also"), respond)
