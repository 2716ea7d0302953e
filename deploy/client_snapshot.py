"""Private state of simulated clients in the run's folder, from which a simulation resumes."""

import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from client.state import ClientMemory, MemoryStore
from common.arrays import Arrays
from common.errors import StateError
from common.files import write_atomically
from server import tensor_file

FILE = "clients.safetensors"
MAX_BYTES = 256 * 2**20
"""Size of all clients' state above which it is not stored."""


@dataclass(frozen=True)
class KeptState:
    """Treatment of the clients' state by one command.

    Args:
        forget: A resumed run starts it anew.
        keep: It stays after the last round, for further rounds.
    """

    forget: bool = False
    keep: bool = False


REMOVED = KeptState()
"""Resumed where it was, and removed at the end."""

log = logging.getLogger("fedloom.server")


class ClientSnapshot:
    """File with the state of all clients after their newest round.

    It is written before the server's checkpoint of that round. A client that is asked for a round again starts from its state
    before that round, so both checkpoints of before and after fit.

    Args:
        folder: Folder of the run.
        stores: State of each client, in the order of their nodes.
    """

    def __init__(self, folder: Path, stores: Sequence[MemoryStore]) -> None:
        self._path, self._run, self._stores = folder / FILE, folder.name, stores
        self._is_too_large, self._has_tensors = False, False

    def write(self) -> None:
        """Replace the file; state above `MAX_BYTES` removes it, with one warning."""
        arrays: Arrays = {}
        clients = []
        for k, store in enumerate(self._stores):
            memory, documents = store.load(self._run), store.documents(self._run)
            marks = {name: hashlib.sha256(content).hexdigest() for name, content in documents.items()}
            for group, tensors in memory.groups.items():
                arrays |= {f"client/{k}/{group}/{name}": tensor.numpy() for name, tensor in tensors.items()}
            for name, content in documents.items():
                arrays[f"document/{marks[name]}"] = np.frombuffer(content, np.uint8)
            clients.append({"round": memory.round, "documents": marks})
        self._has_tensors = any(name.startswith("client/") for name in arrays)
        if sum(array.nbytes for array in arrays.values()) <= MAX_BYTES:
            write_atomically(self._path, tensor_file.dump(arrays, {"clients": json.dumps(clients)}), mode=0o600)
        elif not self._is_too_large:
            log.warning(
                "the clients' state exceeds %d MB and is not stored; a resumed run starts it anew", MAX_BYTES >> 20
            )
            self.remove()
            self._is_too_large = True

    def remove(self) -> None:
        """Remove the file, if it holds state of the method; without any, further rounds need nothing else."""
        if self._has_tensors:
            self._path.unlink(missing_ok=True)

    def restore(self, done: int, *, has_noise: bool) -> None:
        """Give the clients the state that they had after `done` rounds.

        Raises:
            StateError: The file is missing, damaged, or belongs to other clients or another round; or the run has noise, and
                the privacy ledgers of simulated clients ended with their process.
        """
        if has_noise:
            raise self._refusal("the privacy ledgers of simulated clients ended with their process")
        try:
            arrays, about = tensor_file.load(self._path)
            clients = json.loads(about["clients"])
            newest = max(client["round"] for client in clients)
            self._has_tensors = any(name.startswith("client/") for name in arrays)
        except (StateError, KeyError, ValueError) as error:
            raise self._refusal(str(error)) from None
        if len(clients) != len(self._stores) or (self._has_tensors and newest not in (done, done + 1)):
            raise self._refusal(f"{self._path} holds round {newest} of {len(clients)} clients, not round {done}")
        groups: list[dict[str, dict[str, torch.Tensor]]] = [{} for _ in clients]
        for name, array in arrays.items():
            kind, k, group, tensor = (*name.split("/", 3), "", "")[:4]
            if kind == "client":
                groups[int(k)].setdefault(group, {})[tensor] = torch.from_numpy(array)
        for store, client, own in zip(self._stores, clients, groups, strict=True):
            store.save(self._run, ClientMemory(client["round"], own))
            for name, mark in client["documents"].items():
                store.write(self._run, name, arrays[f"document/{mark}"].tobytes())

    def _refusal(self, reason: str) -> StateError:
        return StateError(
            f"{reason}; continue with --resume {self._run} --forget-state, which starts the clients' state anew, or start a"
            " new run"
        )
