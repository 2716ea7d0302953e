"""Shards: files with the stacked state of some of a run's clients, checked when read."""

import hashlib
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.numpy import save
from safetensors.torch import load

from client.training.stacks import Tensors
from common.arrays import Arrays
from common.errors import StateError


@dataclass(frozen=True)
class StoredFile:
    """Size and SHA-256 of a file."""

    bytes: int
    sha256: str


def write_private(path: Path, content: bytes) -> StoredFile:
    """Write a new file and flush it to disk."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return StoredFile(len(content), hashlib.sha256(content).hexdigest())


def read_private(path: Path, stored: StoredFile | None = None) -> bytes:
    """Return the content of a file, which must be the stored one.

    Raises:
        StateError: The file is missing, a link, truncated or altered.
    """
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            content = file.read()
    except OSError as error:
        raise StateError(f"{path} cannot be read ({error.strerror})") from None
    if stored and len(content) != stored.bytes:
        raise StateError(f"{path} has {len(content):,} bytes; its manifest names {stored.bytes:,}")
    if stored and hashlib.sha256(content).hexdigest() != stored.sha256:
        raise StateError(f"{path} is damaged, or another file than its manifest names")
    return content


MAX_BYTES = 64 * 2**20
"""Size of the tensors in one file, unless a single shard is larger."""

ABOUT = "about"
"""Group beside those of the state: numbers of a shard's clients, and the last round of each."""


@dataclass(frozen=True)
class Shard:
    """Clients whose state is stacked.

    Args:
        clients: Numbers of the clients in the run, from 0.
        rounds: Last round in which each of them trained.
        groups: Group -> name -> tensor K × …; views are fine.
    """

    clients: tuple[int, ...]
    rounds: tuple[int, ...]
    groups: Mapping[str, Tensors]

    @property
    def bytes(self) -> int:
        """Size of the tensors."""
        return sum(tensor.nbytes for named in self.groups.values() for tensor in named.values())


def pack(shards: Sequence[Shard]) -> Iterator[list[Shard]]:
    """Yield the shards of each file, in order."""
    part: list[Shard] = []
    for shard in shards:
        if part and sum(one.bytes for one in part) + shard.bytes > MAX_BYTES:
            yield part
            part = []
        part.append(shard)
    if part:
        yield part


def write_shards(path: Path, shards: Sequence[Shard]) -> StoredFile:
    """Write shards as one new file, and flush it to disk."""
    return write_private(path, save(shard_arrays(shards)))


def shard_arrays(shards: Sequence[Shard]) -> Arrays:
    """Return the arrays of a file with these shards; inverse of `shards_of`."""
    arrays: Arrays = {}  # unlike tensors, several of them may share memory
    for number, shard in enumerate(shards):
        about = {"client": torch.tensor(shard.clients), "round": torch.tensor(shard.rounds)}
        for group, named in {ABOUT: about, **shard.groups}.items():
            arrays |= {f"{number}/{group}/{name}": tensor.contiguous().numpy() for name, tensor in named.items()}
    return arrays


def read_shards(path: Path, stored: StoredFile) -> list[Shard]:
    """Return the shards of a file.

    Raises:
        StateError: The file is missing, a link, damaged, or holds no shards.
    """
    content = read_private(path, stored)
    try:
        return shards_of(load(content))
    except (SafetensorError, ValueError, KeyError) as error:
        raise StateError(f"{path} holds no state of clients ({error})") from None


def shards_of(arrays: Tensors) -> list[Shard]:
    """Return the shards of a file with these arrays.

    Raises:
        ValueError: The arrays are those of another file; so does KeyError.
    """
    numbered: dict[int, dict[str, Tensors]] = defaultdict(lambda: defaultdict(dict))
    for key, tensor in arrays.items():
        number, group, name = key.split("/", 2)
        numbered[int(number)][group][name] = tensor
    return [_shard(dict(numbered[number])) for number in sorted(numbered)]


def _shard(groups: dict[str, Tensors]) -> Shard:
    about = groups.pop(ABOUT)
    return Shard(tuple(about["client"].tolist()), tuple(about["round"].tolist()), groups)
