"""Heartbeats of a node: frequent while it answers a request, rare otherwise."""

import threading
from collections.abc import Callable

import grpc

from common.heartbeat import BUSY_SECONDS, IDLE_SECONDS


class Heart:
    """Thread that sends heartbeats until it is stopped.

    Args:
        beat: Function that sends one heartbeat.
    """

    def __init__(self, beat: Callable[[], object]) -> None:
        self._beat = beat
        self._left, self.busy = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Start to send heartbeats."""
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """Send no further heartbeat; wait so long for the end of one in progress."""
        self._left.set()
        self.busy.set()
        self._thread.join(seconds)

    def _run(self) -> None:
        while not self._left.is_set():
            if self.busy.is_set():
                self._left.wait(BUSY_SECONDS)
            else:
                self.busy.wait(IDLE_SECONDS)  # a request ends the pause at once
            if self._left.is_set():
                return
            try:
                self._beat()
            except (grpc.RpcError, grpc.FutureCancelledError, ValueError):
                continue  # the next poll reports the failure; ValueError: channel closed
