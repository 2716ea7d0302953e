"""Checks of a client at its start: data, policy, pins and state folder. They import no PyTorch."""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from client.data.dataset import fingerprint, fingerprint_of_all, is_demo, resolve_source
from client.owner.consent import Consent
from client.owner.policy import Policy, read_policy
from client.settings import ClientSettings
from common.errors import StateError
from common.files import write_atomically
from common.node_names import fresh_node_key

ABOUT = "client.json"

KEY = "node.key"
"""Name of the file with the key of a client whose node has none of its own."""

FIRST_CONTACTS = "helpers.json"
"""Name of the file of helpers' identities that were pinned at first contact."""


@dataclass(frozen=True)
class CheckedClient:
    """Client whose settings hold.

    Args:
        root: Folder of its state; other data have another one.
        policy: The owner's policy.
        data: Fingerprint of all its data, also of those that are other clients' parts.
        first_contacts: File of the identities of helpers at first contact.
    """

    root: Path
    policy: Policy
    data: str
    first_contacts: Path


@functools.cache
def check_client(settings: ClientSettings) -> CheckedClient:
    """Return the client with these settings, and describe its data in the state folder.

    Raises:
        DataError: The data are not there.
        ConfigError: The policy is wrong.
    """
    data = fingerprint(settings.data, settings.part, settings.data_seed)
    root = settings.state_dir / settings.name / data[:16]
    write_about(root, {"data": resolve_source(settings.data), "part": list(settings.part), "seed": settings.data_seed})
    policy = read_policy(settings.policy, is_generated=is_demo(settings.data))
    whole = data if is_demo(settings.data) else fingerprint_of_all(settings.data)
    return CheckedClient(root, policy, whole, settings.state_dir / settings.name / FIRST_CONTACTS)


def open_node_key(path: Path | None, folder: Path) -> ec.EllipticCurvePrivateKey:
    """Return the key of the node at a path; without one, that in the folder, made if it is missing.

    Raises:
        StateError: The file cannot be read or written, or holds no P-384 key.
    """
    try:
        path = path or folder / KEY
        if path == folder / KEY and not path.exists():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            form = serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
            write_atomically(path, fresh_node_key().private_bytes(*form), mode=0o600)
        key = serialization.load_ssh_private_key(path.read_bytes(), None)
    except (OSError, ValueError) as error:
        raise StateError(f"{path} cannot be read ({error}); restore it, or remove it to be a new client") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP384R1):
        raise StateError(f"{path} holds no P-384 key; restore it, or remove it to be a new client")
    return key


def open_consent(settings: ClientSettings) -> Consent:
    """Return the contract of a client with its server; without an identity of the server there is none."""
    folder = settings.state_dir / settings.name if settings.server else None
    return Consent(folder, settings.server, follows_policy=settings.accept == "policy")


def write_about(root: Path, about: Mapping[str, Any]) -> None:
    """Store the origin of a client's state, by which the owner finds its runs after the data have changed."""
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_atomically(root / ABOUT, json.dumps(about).encode(), mode=0o600)


def read_about(root: Path) -> dict[str, Any]:
    """Return the stored origin; empty if there is none.

    Raises:
        StateError: The file is damaged.
    """
    path = root / ABOUT
    try:
        return dict(json.loads(path.read_bytes())) if path.exists() else {}
    except (ValueError, TypeError) as error:
        raise StateError(f"{path} is damaged ({error}); delete it, the client writes a new one") from None
