"""Atomic file replacement: a crash leaves the old file or the new one."""

import os
from pathlib import Path


def write_atomically(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Replace a file and flush it to disk; it has permissions `mode` from its first byte on."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    draft.unlink(missing_ok=True)
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)

    sync_folder(path.parent)


def remove_drafts(*folders: Path) -> None:
    """Remove drafts that killed processes left in folders; no other process may write there at the time."""
    for folder in folders:
        for draft in folder.glob(".*.tmp"):
            draft.unlink(missing_ok=True)


def put_in_place(draft: Path, path: Path) -> None:
    """Flush a finished file to disk, then give it its name in the same folder."""
    with draft.open("rb") as file:
        os.fsync(file.fileno())
    draft.replace(path)
    sync_folder(path.parent)


def close_to_others() -> None:
    """Close new files of this process and its children to other users; FEDLOOM_UMASK opens them."""
    try:
        mask = int(os.environ.get("FEDLOOM_UMASK", "077"), 8) & 0o777
    except ValueError:
        mask = 0o077
    os.umask(mask)


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
