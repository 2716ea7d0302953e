"""Checks of a client at its start: data, policy, pins and state folder. They import no PyTorch."""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from client.data.dataset import fingerprint, fingerprint_of_all, is_demo, resolve_source
from client.owner.policy import Policy, read_policy
from client.settings import ClientSettings
from common.errors import StateError
from common.files import write_atomically

ABOUT = "client.json"

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
