"""Helpers of a simulation's secure sums; their keys follow from those in the folder of the run."""

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from flwr.app import Message

from client.checks import open_node_key
from client.secure.helper.app import answer
from client.secure.helper.helper_service import HelperService
from common.config.run import RunConfig
from common.node_names import fresh_node_key
from common.secure.terms import SumTerms
from server.secure.store import SUMS, SumStore

Helper = Callable[[Message], Message]
"""Answer of a helper to a message."""

HELPERS = "helpers"
"""Folder with the keys of simulated helpers, in that of the run."""


def make_helpers(config: RunConfig, noise_seed: int | None = None, folder: Path | None = None) -> list[Helper]:
    """Return the helpers `helper-1`, `helper-2`, … of a run with trust `helpers`; none in other runs.

    Args:
        config: Configuration of the run.
        noise_seed: Root seed of reproducible noise, which gives no protection; None draws fresh noise.
        folder: Folder of their keys, by which they open sums after a restart, too; None for keys in memory.
    """
    number = config.secure_sums.helpers if config.privacy.trust == "helpers" else 0
    names = [f"helper-{k}" for k in range(1, number + 1)]
    return [partial(answer, _make_helper(name, noise_seed, folder and folder / name)) for name in names]


def go_back(folder: Path, run: str, after: int) -> None:
    """Forget the server's sums of rounds after this one, which helpers without memory of them open again.

    Clients that train a round again mask the same numbers anew; with noise, they send their replies again as they were.
    """
    SumStore(folder / SUMS, run).clear_after(after)


def _make_helper(name: str, noise_seed: int | None, folder: Path | None) -> HelperService:
    key = open_node_key(None, folder) if folder else fresh_node_key()
    secret = key.private_numbers().private_value.to_bytes(48, "big")

    def run_key(run: str) -> X25519PrivateKey:
        return X25519PrivateKey.from_private_bytes(hashlib.sha256(secret + run.encode()).digest())

    if noise_seed is None:
        return HelperService(name, key, run_key=run_key)

    def noise_key(terms: SumTerms) -> bytes:
        return hashlib.sha256(f"{noise_seed}|{name}|{terms.round}|{terms.channel}".encode()).digest()

    return HelperService(name, key, noise_key=noise_key, run_key=run_key)
