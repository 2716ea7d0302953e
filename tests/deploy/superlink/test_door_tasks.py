"""Tasks of the door share the bytes of their content."""

from common.door.door_pb2 import Addressed, ServerFrame
from common.door.frames import CHUNK_BYTES, Assembly
from deploy.superlink.door import OpenTask, TaskContent


def test_all_streams_write_the_same_chunks() -> None:
    content = TaskContent(bytes(range(256)) * (CHUNK_BYTES // 100))
    first, second = ([*OpenTask(Addressed(id=one), 1, content).frames()] for one in "ab")
    assert all(a is b for a, b in zip(first[1:], second[1:], strict=True))
    task = ServerFrame.FromString(first[0]).task
    assert len(first[0]) < 100
    body = Assembly(task.size, task.data)
    for frame in first[1:]:
        body.add(ServerFrame.FromString(frame).chunk)
    assert body.is_complete
    assert body.content == bytes(range(256)) * (CHUNK_BYTES // 100)
