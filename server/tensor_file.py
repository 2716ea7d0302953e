"""Arrays as safetensors bytes with a fingerprint that detects damage."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from common.arrays import Array, Arrays, sha256
from common.errors import StateError


def dump(arrays: Mapping[str, Array], about: Mapping[str, str]) -> bytes:
    """Return the arrays as bytes, with `about` and their fingerprint in the header."""
    whole = {name: np.asarray(a, order="C") for name, a in arrays.items()}
    content: bytes = save(whole, metadata={**about, "sha256": sha256(whole)})
    return content


def load(path: Path) -> tuple[Arrays, dict[str, str]]:
    """Return arrays and header; inverse of `dump`.

    Raises:
        StateError: The file is missing, truncated or altered.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            about = dict(file.metadata() or {})
            arrays: Arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except (SafetensorError, OSError) as error:
        raise StateError(f"{path} cannot be read ({error})") from None
    if about.pop("sha256", "") != sha256(arrays):
        raise StateError(f"{path} is damaged: its arrays do not match the fingerprint in its header")
    return arrays, about
