"""The door's view of Flower's SuperLink: clients as nodes, runs, the ServerApp of a run."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from flwr.common.constant import NOOP_ACCOUNT_NAME, NOOP_FLWR_AID, Status
from flwr.supercore.constant import NodeStatus

from common.wire.messages import PROMISE_SECONDS


class DoorNode:
    """State of the SuperLink, as the door uses it; its methods take as long as the SuperLink's store.

    Args:
        state: State of the SuperLink.
        authenticates: True if only registered keys are admitted; else any client is.
    """

    def __init__(self, state: Any, *, authenticates: bool) -> None:
        self._state, self._authenticates = state, authenticates
        self._guests, self._admitted = set[int](), set[int]()

    def admit(self, key: bytes) -> int | None:
        """Return the node of a client with this key, now connected; None if the key is not registered."""
        node: int | None = self._state.get_node_id_by_public_key(key)
        if node is None and self._authenticates:
            return None
        if node is None:
            node = self._create(key)
            self._guests.add(node)
        self._admitted.add(node)
        self._state.deactivate_node(node)  # a connection before it, also of an earlier SuperLink, has ended
        return node if self._state.activate_node(node, PROMISE_SECONDS) else None

    def is_registered(self, key: bytes) -> bool:
        """Return True if a client with this key is admitted."""
        return not self._authenticates or self._state.get_node_id_by_public_key(key) is not None

    def register(self, key: bytes) -> bool:
        """Register a key; return False if it was registered once, and is not now."""
        with suppress(ValueError):  # also another call may have registered it
            self._create(key)
        return self.is_registered(key)

    def elsewhere(self, nodes: Iterable[int]) -> set[int]:
        """Return the nodes of these that are connected, and not by the door: Flower's own."""
        wanted = {*nodes} - self._admitted
        found = self._state.get_node_info(node_ids=sorted(wanted), statuses=[NodeStatus.ONLINE]) if wanted else ()
        return {one.node_id for one in found}

    def leave(self, node: int) -> None:
        """Note that a client has gone."""
        self._state.deactivate_node(node)
        if node in self._guests:
            self._guests.remove(node)
            self._state.delete_node(NOOP_FLWR_AID, node)

    def beat(self, beats: Iterable[int], connected: Iterable[int]) -> set[int]:
        """Pass on heartbeats; return the connected clients whose keys are no longer registered."""
        for node in beats:
            self._state.acknowledge_node_heartbeat(node, PROMISE_SECONDS)
        nodes = [*connected]
        gone = self._state.get_node_info(node_ids=nodes, statuses=[NodeStatus.UNREGISTERED]) if nodes else ()
        return {one.node_id for one in gone}

    def run_of(self, token: str) -> int | None:
        """Return the run whose ServerApp has this token; None if there is none."""
        task = self._state.get_task_by_token(token) if token else None
        return None if task is None else int(task.run_id)

    def ended(self, runs: Iterable[int]) -> set[int]:
        """Return the runs of these that have ended."""
        wanted = {*runs}
        found = self._state.get_run_info(run_ids=sorted(wanted)) if wanted else ()
        return wanted - {run.run_id for run in found if run.status.status != Status.FINISHED}

    def _create(self, key: bytes) -> int:
        return int(self._state.create_node(NOOP_FLWR_AID, NOOP_ACCOUNT_NAME, key, 0))
