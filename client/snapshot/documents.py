"""Documents of all clients of a run as one file, in which equal contents stand once."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from client.snapshot.files import StoredFile, read_private, write_private
from common.arrays import Arrays
from common.errors import StateError

NONE = -1
"""Place of a document that a client does not have."""

Documents = Sequence[Mapping[str, bytes]]
"""Documents of each client by name."""


def write_documents(path: Path, documents: Documents) -> StoredFile:
    """Write the documents as a new file, and flush it to disk."""
    names = sorted({name for own in documents for name in own})
    places: dict[bytes, int] = {}
    index = [[places.setdefault(own[n], len(places)) if n in own else NONE for n in names] for own in documents]
    arrays: Arrays = {
        "names": np.frombuffer(json.dumps(names).encode(), np.uint8),
        "content": np.frombuffer(b"".join(places), np.uint8),
        "ends": np.cumsum([len(content) for content in places], dtype=np.int64),
        "index": np.array(index, np.int64).reshape(len(documents), len(names)),
    }
    return write_private(path, save(arrays))


def read_documents(path: Path, stored: StoredFile) -> list[dict[str, bytes]]:
    """Return the documents of each client; clients with equal ones share their content.

    Raises:
        StateError: The file is missing, a link, damaged, or holds no documents.
    """
    stored_content = read_private(path, stored)
    try:
        arrays = load(stored_content)
        names, content = json.loads(arrays["names"].tobytes()), arrays["content"].tobytes()
        ends = arrays["ends"].tolist()
        contents = [content[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        rows = arrays["index"].tolist()
        return [{n: contents[k] for n, k in zip(names, row, strict=True) if k != NONE} for row in rows]
    except (SafetensorError, ValueError, KeyError, IndexError) as error:
        raise StateError(f"{path} holds no documents of clients ({error})") from None
