"""Resident clients in threads of this process, and apps for them."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from client.node.failures import Server
from client.node.resident import Answer, run_resident


def app_of(train: Callable[[Message, Context], Message]) -> ClientApp:
    app = ClientApp()
    app.train()(train)
    return app


def echo(message: Message, context: Context) -> Message:
    seen = int(context.state.config_records["seen"]["count"]) if "seen" in context.state else 0
    context.state["seen"] = ConfigRecord({"count": seen + 1})
    return Message(RecordDict({"answer": ConfigRecord({"seen": seen + 1})}), reply_to=message)


def wait_until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.005)


class RunningResident:
    """A resident client in a thread of this process."""

    def __init__(self, app: Answer, address: str | Server, **options: Any) -> None:
        self.stop, self.events = threading.Event(), list[str]()
        self.error: Exception | None = None
        options = {"random": Random(0), **options}
        self.thread = threading.Thread(target=self._run, args=(app, address, options), daemon=True)
        self.thread.start()

    def _run(self, app: Answer, address: str | Server, options: dict[str, Any]) -> None:
        try:
            server = address if isinstance(address, Server) else Server(address)
            run_resident(app, server, stop=self.stop, on_event=self.events.append, **options)
        except Exception as error:
            self.error = error

    def leave(self) -> float:
        start = time.monotonic()
        self.stop.set()
        self.thread.join(10)
        assert not self.thread.is_alive()
        return time.monotonic() - start


def resident_mb() -> float:
    """Return the resident memory of this process, which has server and client."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 10**6
