"""Journal of a client: one JSON object per request that it received, for its owner."""

import fcntl
import json
import logging
import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from common.files import append_whole


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Exclude other writers of the folder; the lock ends with the file handle."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


JOURNAL = "journal.jsonl"
"""Name of the newest file; older ones are `journal.1.jsonl` to `journal.5.jsonl`."""

MAX_BYTES = 10_000_000
"""Size at which a file is rotated."""

ROTATED_FILES = 5
"""Number of older files that stay."""

Asked = Literal["enrol", "names", "assign", "train", "evaluate", "helper", "prepare", "open", ""]
"""Kind of a request; empty for a message of another kind."""

Connection = Literal["connected", "away", "left"]
"""State of the connection to the server."""

_log = logging.getLogger("fedloom.node")


@dataclass(frozen=True)
class RequestEntry:
    """One request and its reply."""

    id: str
    """Identifier of the message; the entry of an acknowledged reply repeats it."""
    time: str
    """Time of the request: UTC by this machine's clock, ISO 8601."""
    client: str
    """Name of the client; several clients may share a state folder."""
    run: str = ""
    round: int = 0
    rounds: int = 0
    """Number of rounds of the run; 0 if unknown."""
    asked: Asked = ""
    method: str = ""
    task: str = ""
    records: int = 0
    """Number of records that the client trains on; it stays on this machine in runs with noise."""
    received_bytes: int = 0
    sent_bytes: int = 0
    tensors: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Shape of each array in the reply."""
    clear: dict[str, float] = field(default_factory=dict)
    """Numbers in the reply that no noise covers."""
    noised: bool = False
    """True if noise covers the arrays of the reply."""
    epsilon_spent: float = 0.0
    """Increase of the run's ε by this reply."""
    epsilon_run: float | None = None
    """ε of the run's budget; None without noise."""
    epsilon_left_run: float | None = None
    """Remaining ε of the run; None without noise."""
    epsilon_left_total: float | None = None
    """Remaining ε of the data over all runs; None without a limit."""
    seconds: float = 0.0
    """Time from the request to the reply."""
    acknowledged: str = ""
    """Time at which the server had received the reply; empty before."""
    refused: str = ""
    """Reason in a reply without content; empty otherwise."""
    contract: str = ""
    """Hash of the contract with the server at the reply; empty without one."""


@dataclass(frozen=True)
class ConnectionEntry:
    """Change of the connection to the server."""

    time: str
    client: str
    connection: Connection
    server: str
    reason: str = ""
    """Error of the last attempt; empty if there was none."""


class RequestJournal:
    """Journal file of a state folder; several processes may write to it.

    A journal that cannot be written stops no training. One warning is logged until a write succeeds again.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._is_failing = folder, False
        self._held: list[bytes] | None = None

    def write(self, entry: RequestEntry | ConnectionEntry) -> None:
        """Append an entry; rotate a full file before."""
        line = _to_json(vars(entry)).encode() + b"\n"
        if self._held is None:
            self._write([line])
        else:
            self._held.append(line)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Append all entries of the block at its end, by one write for each `MAX_BYTES`."""
        self._held = []
        try:
            yield
        finally:
            lines, self._held = self._held, None
            self._write(lines)

    def _write(self, lines: Iterable[bytes]) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with lock_folder(self._folder):
                for part in _chunks(lines):
                    _rotate(self._folder, len(part))
                    append_whole(self._folder / JOURNAL, part)
        except OSError as error:
            if not self._is_failing:
                _log.warning(
                    "cannot write the journal %s (%s); training continues without it",
                    self._folder / JOURNAL,
                    error.strerror or error,
                )
            self._is_failing = True
        else:
            self._is_failing = False


def read_journal(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the stored entries, oldest first; a damaged line is skipped.

    The entry of an acknowledged reply follows the one from before it was sent, with the same id.
    """
    for path in (*(_rotated(folder, k) for k in range(ROTATED_FILES, 0, -1)), folder / JOURNAL):
        if not path.exists():
            continue
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                with suppress(ValueError):
                    entry = json.loads(line)
                    if isinstance(entry, dict) and isinstance(entry.get("client"), str):
                        yield entry


def _chunks(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines in parts that fit into a file each."""
    part, size = list[bytes](), 0
    for line in lines:
        if part and size + len(line) > MAX_BYTES:
            yield b"".join(part)
            part, size = [], 0
        part.append(line)
        size += len(line)
    if part:
        yield b"".join(part)


def _rotate(folder: Path, more: int) -> None:
    path = folder / JOURNAL
    if not path.exists() or path.stat().st_size + more <= MAX_BYTES:
        return
    for k in range(ROTATED_FILES, 1, -1):
        if _rotated(folder, k - 1).exists():
            _rotated(folder, k - 1).replace(_rotated(folder, k))
    path.replace(_rotated(folder, 1))


def _rotated(folder: Path, number: int) -> Path:
    return folder / f"journal.{number}.jsonl"


def _to_json(fields: dict[str, Any]) -> str:
    try:
        return json.dumps(fields, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(fields), ensure_ascii=False)


def _finite(value: Any) -> Any:
    """Return the value with texts in place of non-finite numbers, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
