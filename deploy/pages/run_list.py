"""Runs for the live page: the list, and configuration, result, privacy statement and origin of each."""

import fcntl
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from common.config.parse import parse
from common.errors import DataError, FedloomError
from deploy.pages import text
from deploy.pages.metrics import format_value, headlines
from deploy.pages.stream import FILE, MAX_LINE, open_file, read_config, read_file, run_ids, stamp
from deploy.pages.text import first_line, statement_of
from server.record.events import Event, Finish, Metrics, Round, Start, event_from_line
from server.record.folder import LOCK_FILE
from server.record.privacy_statement import statement
from server.record.result import Privacy, Result, result_from_json, result_to_json

MAX_LOOK_BACK = 100  # events from the end in which metrics are searched
RECENT_SECONDS = 30.0  # seconds after its last event in which a run without lock file counts as running


@dataclass(frozen=True)
class RunSummary:
    """Row of the run list.

    Args:
        status: `running`, `completed`, `failed` or `stopped`.
        reason: Reason of the status; empty if there is none.
        metric: Name of the headline metric.
        value: Its value as text.
        epsilon: ε of the whole run; None without noise.
        started: Time of the first start, seconds since 1970; None before it.
        seconds: Seconds from the first start to the last event.
        group: Key of comparable runs, equal for equal task, data, split and seed; empty if the data are unspecified.
    """

    id: str
    task: str
    method: str
    model: str
    seed: str
    status: str
    reason: str
    rounds: int
    rounds_done: int
    metric: str
    value: str
    epsilon: float | None
    started: float | None
    seconds: float
    group: str


class RunList:
    """Summaries of all runs; those of unchanged files are reused.

    Args:
        root: Folder of runs.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._cache: dict[str, tuple[tuple[int, ...], RunSummary | None]] = {}

    def newest(self, limit: int) -> list[dict[str, Any]]:
        """Return the summaries of the newest runs, newest first."""
        names = run_ids(self._root)
        stamps = {name: stamp(self._root, name) for name in names}
        self._cache = {name: entry for name, entry in self._cache.items() if name in stamps}
        created = sorted(names, key=lambda name: (_created(self._root, name), name), reverse=True)
        found: list[dict[str, Any]] = []
        for name in created:
            if len(found) == limit:
                break
            if (summary := self._summary(name, stamps[name])) is not None:
                found.append(asdict(summary))
        return found

    def _summary(self, name: str, stamped: tuple[int, ...]) -> RunSummary | None:
        entry = self._cache.get(name)
        if entry is None or entry[0] != stamped or (entry[1] and entry[1].status in ("running", "stopped")):
            entry = stamped, summarize(self._root, name)
            self._cache[name] = entry
        return entry[1]


def _created(root: Path, name: str) -> float:
    """Return the time at which the run was configured; a resumed run keeps its place."""
    try:
        return os.lstat(root / name / "catalogue.json").st_mtime
    except OSError:
        return 0.0


def summarize(root: Path, run: str) -> RunSummary | None:
    """Return the row of one run; None if its folder holds no run."""
    if (config := read_config(root, run)) is None:
        return None
    first, last = _ends(root, run)
    status, reason = _status(root, run, last)
    label, value = _headline(last)
    begin = first.time if first else None
    return RunSummary(
        id=run,
        task=str(config.get("task", "?")),
        method=str(config.get("method", "?")),
        model=str(config.get("model", "")),
        seed=str(config.get("seed", "")),
        status=status,
        reason=first_line(reason),
        rounds=_whole(config.get("rounds")),
        rounds_done=next((event.round for event in last if isinstance(event, Round)), 0),
        metric=label,
        value=value,
        epsilon=_epsilon(config),
        started=begin,
        seconds=max(last[0].time - begin, 0.0) if last and begin else 0.0,
        group=_group(first),
    )


def _group(first: Start | None) -> str:
    if first is None or not first.fingerprint:
        return ""
    return "|".join((first.task, first.fingerprint, first.split, str(first.seed)))


def _ends(root: Path, run: str) -> tuple[Start | None, list[Event]]:
    """Return the first event if it is a start, and the events of the last megabyte, newest first."""
    if (file := open_file(root, run, FILE)) is None:
        return None, []
    with file:
        first = next(_events([file.readline(MAX_LINE)]), None)
        file.seek(max(os.fstat(file.fileno()).st_size - MAX_LINE, 0))
        lines = file.read(MAX_LINE).splitlines()
    last: list[Event] = []
    for event in _events(reversed(lines)):
        last.append(event)
        if len(last) >= MAX_LOOK_BACK or (isinstance(event, Round) and event.metrics):
            break
    return first if isinstance(first, Start) else None, last


def _events(lines: Iterable[bytes]) -> Iterator[Event]:
    for line in lines:
        try:
            yield event_from_line(line)
        except DataError:
            continue


def _status(root: Path, run: str, last: Sequence[Event]) -> tuple[str, str]:
    """Return the status and its reason from the newest events and the run's lock."""
    if last and isinstance(last[0], Finish):
        return last[0].status, last[0].reason
    is_recent = bool(last) and time.time() - last[0].time < RECENT_SECONDS
    if _is_locked(root, run, otherwise=is_recent):
        return "running", ""
    return "stopped", "its process ended; resume it with --resume" if last else "no round yet"


def _is_locked(root: Path, run: str, *, otherwise: bool) -> bool:
    """Return True if a process works on the run, `otherwise` if it has no lock file; nothing is written."""
    if (file := open_file(root, run, LOCK_FILE)) is None:
        return otherwise
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def _headline(last: Sequence[Event]) -> tuple[str, str]:
    """Return name and value of the first headline metric of the newest evaluated round."""
    metrics: Metrics = next((event.metrics for event in last if isinstance(event, Round) and event.metrics), {})
    shown = [m for m in headlines(metrics) if not m.baseline]
    m = next((m for m in shown if m.key != "loss"), next(iter(shown), None))
    return (m.short, format_value(m, metrics[m.key])) if m else ("", "")


def _epsilon(config: Mapping[str, Any]) -> float | None:
    epsilon = config.get("privacy.epsilon")
    is_noisy = config.get("privacy.unit", "none") != "none"
    return float(epsilon) if is_noisy and isinstance(epsilon, int | float) else None


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


MAX_CLIENTS = 1_000  # clients of one answer
MAX_EXAMPLES = 1_000_000  # bytes of examples.json


def read_detail(root: Path, run: str) -> dict[str, Any] | None:
    """Return one run as a JSON value; None if there is no such run."""
    if (config := read_config(root, run)) is None:
        return None
    result = _result(root, run)
    privacy = result.privacy if result else _expected_privacy(config)
    sentences = statement_of(result) if result else text.privacy(privacy) if privacy else None
    return {
        "id": run,
        "config": config,
        "result": _as_json(result) if result else None,
        "privacy": _describe(privacy, *sentences) if privacy and sentences else None,
        "origin": _origin(root, run),
        "has_examples": read_file(root, run, "examples.json", MAX_EXAMPLES) is not None,
    }


def _result(root: Path, run: str) -> Result | None:
    content = read_file(root, run, "result.json")
    try:
        return result_from_json(content) if content else None
    except DataError:
        return None


def _as_json(result: Result) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(result_to_json(result))
    value["clients_total"] = len(value["clients"])
    value["clients"] = dict(list(value["clients"].items())[:MAX_CLIENTS])
    return value


def _expected_privacy(config: Mapping[str, Any]) -> Privacy | None:
    """Return the statement of a run before its end; None if its package or an option is missing here."""
    try:
        return statement(parse({key: value for key, value in config.items() if key != "resume"}), {}, 0)
    except FedloomError:
        return None


def _describe(privacy: Privacy, claim: str, terms: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the statement with its sentences; `exact` is True if updates are sent without noise."""
    unit = text.cost(privacy.account, 0).split()[0] if privacy.account else ""
    return {
        **asdict(privacy),
        "claim": claim,
        "terms": terms,
        "exact": privacy.epsilon is None,
        "cost": unit,
        "counted": text.counted(privacy.account) if privacy.account else "",
    }


def _origin(root: Path, run: str) -> dict[str, Any] | None:
    try:
        value = json.loads(read_file(root, run, "origin.json") or b"null")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
