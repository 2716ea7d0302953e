"""Search the files that a federation leaves behind for updates, messages and keys; also the files of a container."""

import io
import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from safetensors.numpy import load

MODELS = ".safetensors"
"""Suffix of models of the run and of its checkpoints, and of what each client keeps of its own training."""

JOURNAL = "journal.jsonl"
"""A client's own record of what it sent: names and sizes of arrays, without values."""


def files_in(folders: Iterable[Path]) -> dict[str, bytes]:
    """Return the content of each file below the folders by its path."""
    paths = (path for folder in folders for path in folder.rglob("*"))
    return {str(path): path.read_bytes() for path in paths if path.is_file() and not path.is_symlink()}


def files_in_container(container: str, folder: str) -> dict[str, bytes]:
    """Return the content of each file below a folder of a container by its name; it may be a volume."""
    copied = subprocess.run(
        ["docker", "cp", f"{container}:{folder}", "-"], timeout=120, capture_output=True, check=True
    )
    with tarfile.open(fileobj=io.BytesIO(copied.stdout)) as archive:
        opened = {f"{container}:/{member.name}": archive.extractfile(member) for member in archive}
        return {name: file.read() for name, file in opened.items() if file}


def require_nothing_left(contents: Mapping[str, bytes]) -> None:
    """Check that no float, no array's name and no message is outside the models, and no private key outside key files.

    Args:
        contents: Name of each file -> its content. Floats and names to search for are those of the models among them.
    """
    models = {name: load(content) for name, content in contents.items() if name.endswith(MODELS)}
    arrays = [array.ravel() for model in models.values() for array in model.values() if array.dtype == np.float32]
    starts = (array[at : at + 4] for array in arrays for at in (0, len(array) // 2))
    floats = {values.tobytes() for values in starts if len(set(values.tolist())) == 4}
    ends = {name.rpartition("/")[2].encode() for model in models.values() for name in model}
    names = {name for name in ends if b"." in name} | {b"wire.arrays"}
    others = {name: content for name, content in contents.items() if name not in models}
    assert min(map(len, (floats, names, others))) > 4, "there is something to search for, and where"
    assert {name for name, content in others.items() if any(values in content for values in floats)} == set()
    unnamed = {name: content for name, content in others.items() if JOURNAL not in name}
    assert {name for name, content in unnamed.items() if any(array in content for array in names)} == set()
    holders = {name for name, content in others.items() if b"PRIVATE KEY" in content}
    assert holders
    assert all(name.endswith(".key") for name in holders)
