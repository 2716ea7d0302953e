"""Lines and JSON of a server's status."""

import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deploy.server_status import ServerStatus


def as_json(server: "ServerStatus") -> dict[str, Any]:
    """Return the status as a JSON object; events are those of metrics.jsonl."""
    import json

    from server.events import event_to_line

    events = {name: getattr(server, name) for name in ("start", "last", "waiting", "finish")}
    stored = {name: json.loads(event_to_line(event)) for name, event in events.items() if event}
    processes = [asdict(one) for one in server.processes]
    return {**asdict(server), **dict.fromkeys(events), **stored, "processes": processes}


def as_lines(server: "ServerStatus") -> Iterator[str]:
    """Iterate over the lines of a server's status."""
    from common.text import printable
    from deploy.progress import round_line, waiting_line
    from deploy.report.text import first_line

    start = server.start
    about = f" ({start.method} on {start.task})" if start else ""
    yield f"server {server.home}: run {server.run}{about}: {_state(server)}"
    if server.last:
        yield f"  {round_line(server.last, start).plain}"
    if server.waiting:
        until = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(server.waiting.until))
        yield f"  {waiting_line(server.waiting).plain}, until {until}"
    if server.absent:
        yield f"  registered and not connected: {', '.join(printable(name, 80) for name in server.absent)}"
    if server.finish and server.finish.reason:
        yield f"  {first_line(server.finish.reason, 400)}"
    if server.processes:
        names = ", ".join(f"{printable(one.name, 80)} (process {one.pid})" for one in server.processes)
        yield f"  {names}; fedloom stop ends them"


def _state(server: "ServerStatus") -> str:
    done = f"{server.last.round if server.last else 0} of {server.start.rounds} rounds" if server.start else "no round"
    text = {
        "starting": "starts; no client is enrolled yet",
        "waiting": f"waits for clients; {done} done",
        "training": f"trains; {done} done",
        "completed": f"completed; {done} done",
        "failed": f"failed; {done} done",
        "stopped": f"not running; {done} done",
    }
    return text[server.state]
