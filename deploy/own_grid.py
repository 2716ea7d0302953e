"""Grid of a SuperLink's run in this process, without Flower's program for a ServerApp."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

from flwr.common.serde import run_from_proto
from flwr.proto.runtime_pb2 import PullTaskInputRequest
from flwr.supercore.heartbeat import HeartbeatSender, make_task_heartbeat_fn_http
from flwr.supercore.task_identity import TaskIdentity
from flwr.superlink.grid import HttpGrid

from deploy.app_process import await_run
from deploy.superlink import SuperLinkSettings

TRIES = 5
"""Calls to a SuperLink that does not answer, over half a minute."""


@contextmanager
def own_grid(superlink: SuperLinkSettings) -> Iterator[HttpGrid]:
    """Yield the Grid of the submitted run of a SuperLink, which belongs to this process."""
    authority = superlink.certificates.ca.read_bytes() if superlink.certificates else None
    token = await_run(superlink.control_address, authority)
    grid = HttpGrid(superlink.control_address, authority is None, authority, token=token)
    grid._retry_invoker.max_tries = TRIES
    heart = HeartbeatSender(make_task_heartbeat_fn_http(grid._runtime_client))
    heart.start()
    try:
        task = grid._runtime_client.PullTaskInput(PullTaskInputRequest())
        grid.set_run(run_from_proto(task.run))
        TaskIdentity.task_id, TaskIdentity.run_id = task.task_id, task.run.run_id
        TaskIdentity.node_id = task.context.node_id
        yield grid
    finally:
        Thread(target=heart.stop, daemon=True).start()  # it waits for a SuperLink that has ended
        grid.close()
