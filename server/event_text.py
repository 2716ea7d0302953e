"""Events of a run as lines of the ServerApp's log, which `flwr run --stream` and `flwr log` show."""

from pathlib import Path

from common.text import count
from server.events import Event, Finish, Round, Start


def event_text(event: Event, folder: Path) -> str:
    """Return a line about an event; empty for events that the log omits.

    Args:
        event: The event.
        folder: Folder of the run.
    """
    match event:
        case Start():
            remark = f"; {event.remark}" if event.remark else ""
            rounds = count(event.rounds, "round")
            return f"run {event.run}: {event.method} on {event.task}, {rounds}, seed {event.seed}{remark}"
        case Round():
            figures = "".join(f", {key} {value:.3f}" for key, value in sorted(event.metrics.items()))
            clients = f"{event.answered}/{event.asked} clients, {event.seconds:.1f} s"
            return f"round {event.round}/{event.rounds}: {clients}, train loss {event.loss:.3f}{figures}"
        case Finish():
            reason = f": {event.reason}" if event.reason else ""
            return f"run {event.status}{reason}; result in {(folder / 'result.json').resolve()}"
        case _:
            return ""
