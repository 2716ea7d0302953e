"""Helpers of secure sums: the process of `fedloom helper`, and clients that also help; no torch."""

import logging
import threading
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec
from flwr.app import Context, Message

from client.node import resident
from client.node.failures import Server
from client.node.flower import failure_reply
from client.secure.helper.app import HelperObserver, Respond, help_too, make_app
from client.secure.helper.helper_service import HelperService
from common.errors import FullDiskError
from common.files import require_room
from common.node_names import check_name, default_name, fingerprint
from common.wire.messages import ENROL, HELPER
from deploy.files import read_file


def begin_service() -> threading.Event:
    """Write the log of a resident node to stderr, and return an event that a signal to leave sets."""
    stop = threading.Event()
    resident.leave_on_signals(stop)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", force=True)
    logging.getLogger("flwr").setLevel(logging.WARNING)
    return stop


def with_room(app: Respond, *folders: Path) -> Respond:
    """Return an app that answers with a failure while a disk of these folders has too little room.

    Nothing is computed or charged then. The server asks again, and the answer comes when there is room.
    Enrolments and requests for cards are answered in any case.
    """

    def handle(message: Message, context: Context) -> Message:
        try:
            if message.metadata.message_type not in (ENROL, HELPER):
                require_room(*folders)
        except FullDiskError as error:
            return failure_reply(message, error)
        return app(message, context)

    return handle


def serve_sums(
    address: str,
    ca: Path,
    key: ec.EllipticCurvePrivateKey,
    key_file: Path,
    name: str,
    *,
    patience: float,
    forget: float,
    most_numbers: int,
) -> None:
    """Answer the server until a signal stops the helper.

    An empty name is made from the key. `patience` is in seconds, and after `forget` days without a message keys are deleted.

    Raises:
        ConfigError: An option is wrong.
        ConnectError: Retrying cannot help.
    """
    stop, identity = begin_service(), fingerprint(key.public_key())
    name = check_name(name) if name else default_name(identity)
    server = Server(address, read_file(ca), key, key_file, name)
    service = HelperService(name, key, most_numbers=most_numbers)
    observer = HelperObserver(address, f"helper {name}, {identity}", service.state, forget)
    resident.run_resident(make_app(service), server, stop=stop, patience=patience, observer=observer)


def helping_too(name: str, key: ec.EllipticCurvePrivateKey, respond: Respond) -> Respond:
    """Return the app of a client that also helps, from its app alone."""
    return help_too(HelperService(name, key, serves="also"), respond)
