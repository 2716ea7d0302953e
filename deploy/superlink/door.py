"""Door of a server: the streams of its clients behind mutual TLS, and orders of the ServerApp to them.

It lives in the process of the SuperLink with an event loop of its own. The ServerApp's orders are calls of that process, and no
store holds messages.
A client is let in by the key of its certificate, and has one stream. A reply that no order awaits, or that is too large, is
refused unread.
"""

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from common.door.door_pb2 import (
    Addressed,
    Answer,
    Answers,
    Certificate,
    ClientFrame,
    Go,
    Hello,
    Notice,
    Order,
    Received,
    Reply,
    ServerFrame,
    Task,
    Welcome,
)
from common.door.frames import ELSEWHERE, MOST_VARIABLE, Assembly, DoorLimits, chunks_of
from common.errors import WireError
from common.wire.messages import FAILED, SILENCE_SECONDS
from deploy.superlink.admission import Admission, Allowance, NoticeError
from deploy.superlink.door_node import DoorNode

log = logging.getLogger("flwr")

TICK_SECONDS = 0.2
"""Seconds between two passes over heartbeats, revoked keys and ended runs."""

ORDER_SECONDS = 0.25
"""Seconds for which an order waits for its first answer; the ServerApp then asks again."""

LEAST_WAIT, WAIT_SHARE, MOST_WAIT = 0.1, 0.25, 0.5
"""Seconds for which answers wait for others: a share of the time since their task, within bounds."""

BATCH_BYTES = 4 * 2**20
"""Bytes of answers that wait for no others, and of a batch of several."""

FETCH_SECONDS = 1.0
"""Seconds from a reply in which its client counts as connected, so that the ServerApp fetches it."""

NOTICE_SECONDS = 1.0
"""Seconds in which a client must take the reason for which its stream ends."""

STORE_SECONDS = 2.0
"""Seconds after which a wait for the SuperLink's store is logged."""

BARRED = "the key of this client is barred for a time"

SLOW = "its reply to an earlier request is still on its way"

MISSING = 3
"""Flower's code of an answer that will not come."""


class TaskContent:
    """Content of one or more tasks; its frames are encoded once, and all streams write the same bytes."""

    def __init__(self, content: bytes) -> None:
        self.size = len(content)
        self.chunks = [ServerFrame(chunk=chunk).SerializeToString() for chunk in chunks_of(content)]


@dataclass
class OpenTask:
    """Task whose answer an order awaits.

    Args:
        about: The task, and the node that it is for.
        run: Run of its order.
        content: Its content, until the client has it.
        upload: Seconds in which the reply must arrive once it has begun; 0 for the door's own limit.
        since: Time of its order.
        answer: The answer; None until it is here.
        is_over: True if the ServerApp waits no longer; content and answer are then nobody's.
    """

    about: Addressed
    run: int
    content: TaskContent | None
    upload: float = 0.0
    since: float = field(default_factory=time.monotonic)
    answer: Answer | None = None
    is_over: bool = False

    def forget(self) -> None:
        """Drop content and answer; a late reply is taken unread."""
        self.content, self.is_over = None, True
        if self.answer:
            self.answer = Answer(task=self.about.id)

    def frames(self) -> Iterator[bytes]:
        """Yield the frames of the task."""
        about, content = self.about, self.content
        if content is None:
            return
        task = Task(id=about.id, run=self.run, kind=about.kind, group=about.group, created=about.created, ttl=about.ttl)
        task.size = content.size
        yield ServerFrame(task=task).SerializeToString()
        yield from content.chunks


class OpenOrder:
    """Order of the ServerApp without an answer.

    Args:
        tasks: Tasks whose answers it awaits.
    """

    def __init__(self, tasks: Iterable[OpenTask]) -> None:
        self.tasks = {task.about.id: task for task in tasks}
        self.left = {one for one, task in self.tasks.items() if task.answer is None}
        self.bytes = sum(len(task.answer.content) for task in self.tasks.values() if task.answer)
        self.some, self.enough = asyncio.Event(), asyncio.Event()
        self._look()

    def settle(self, task: OpenTask) -> None:
        """Note the answer to a task."""
        if task.about.id in self.left and task.answer:
            self.left.remove(task.about.id)
            self.bytes += len(task.answer.content)
            self._look()

    def found(self) -> list[Answer]:
        """Return answers that are here, the first of them and as many more as a batch can have."""
        found, size = list[Answer](), 0
        for answer in filter(None, (task.answer for task in self.tasks.values())):
            size += len(answer.content)
            if found and size > BATCH_BYTES:
                break
            found.append(answer)
        return found

    def _look(self) -> None:
        if len(self.left) < len(self.tasks):
            self.some.set()
        if not self.left or self.bytes >= BATCH_BYTES:
            self.enough.set()


Count = Callable[[NoticeError], None]
"""Counts a refusal of a caller."""


class ClientStream:
    """Stream of one client, after its hello; at `renew_at` its key needs another certificate."""

    def __init__(self, node: int, context: Any, allowance: Allowance, key: bytes, renew_at: float) -> None:
        self.node, self.allowance, self._context = node, allowance, context
        self.count: Count = lambda refusal: None
        self._key, self._renew_at = key, renew_at
        self._frames: asyncio.Queue[Iterable[bytes]] = asyncio.Queue()
        self.end: asyncio.Future[NoticeError] = asyncio.get_running_loop().create_future()
        self.reply: Reply | None = None
        self.body: Assembly | None = None
        self.begun = self.deadline = 0.0
        self.is_slow = self.is_over = False
        self.answered = -FETCH_SECONDS

    def put(self, frames: Iterable[bytes]) -> None:
        """Queue frames; they are made when the connection takes them."""
        self._frames.put_nowait(frames)

    def put_frame(self, frame: ServerFrame) -> None:
        """Queue one frame."""
        self.put((frame.SerializeToString(),))

    def close(self, kind: Notice.Kind, text: str) -> None:
        """End the stream soon, and tell the client why."""
        if not self.end.done():
            self.end.set_result(NoticeError(kind, text))
            self.put((b"",))  # wakes the writer, which ends

    def renew(self, admission: Admission) -> None:
        """Send another certificate if it is time."""
        if time.time() >= self._renew_at:
            pem, self._renew_at = admission.certify(self._key)
            self.put_frame(ServerFrame(certificate=Certificate(pem=pem)))

    async def write(self) -> None:
        """Write queued frames until the stream ends; a frame in flight then is written whole."""
        while True:
            for frame in await self._frames.get():
                if self.end.done():
                    return
                await self._context.write(frame)


class Door:
    """Door of a server."""

    def __init__(self, node: DoorNode, limits: DoorLimits, admission: Admission) -> None:
        self._node, self._limits, self._admission = node, limits, admission
        self._store = ThreadPoolExecutor(1, "door-store")  # the SuperLink's state may be a database
        self._streams: dict[int, ClientStream] = {}
        self._tasks: dict[str, OpenTask] = {}
        self._orders: list[OpenOrder] = []
        self._handed: dict[int, set[str]] = {}
        """Run -> tasks whose answers its ServerApp was given last, and may ask for again."""
        self._beats, self._open_calls = set[int](), 0
        self._leaving = set[asyncio.Future[None]]()
        self._allowances: dict[bytes, Allowance] = {}

    async def run(self) -> None:
        """Pass on heartbeats, end the streams of revoked keys, and forget ended runs, until cancelled."""
        while True:
            await asyncio.sleep(TICK_SECONDS)
            await self._tick()

    async def run_of(self, token: str) -> int | None:
        """Return the run whose ServerApp has this token; None if there is none."""
        run: int | None = await self._ask_store(self._node.run_of, token)
        return run

    async def exchange(self, run: int, order: Order) -> Answers:
        """Return answers that an order awaits, or none after a moment.

        An order with tasks takes these to the clients, and is not answered. Answers that did not reach the ServerApp are given
        again if its next order awaits them. Answers beside those awaited are given if they are here.
        """
        for identity in self._handed.pop(run, set[str]()).difference(order.awaited, order.beside):
            self._tasks.pop(identity, None)
        if order.tasks:
            away = {task.node for task in order.tasks} - self._streams.keys()
            self._open(run, order, await self._ask_store(self._node.elsewhere, away) if away else away)
            return Answers()
        found = await self._wait(OpenOrder(self._awaited(run, order.awaited))) if order.awaited else []
        found += [task.answer for task in self._awaited(run, order.beside) if task.answer]
        self._handed[run] = {answer.task for answer in found}
        return Answers(answers=found)

    async def _wait(self, pending: OpenOrder) -> list[Answer]:
        """Return the answers to an order that come within a moment."""
        self._orders.append(pending)
        try:
            await _at_most(ORDER_SECONDS, pending.some.wait())
            age = time.monotonic() - min(task.since for task in pending.tasks.values())
            if pending.some.is_set():
                await _at_most(min(max(LEAST_WAIT, WAIT_SHARE * age), MOST_WAIT), pending.enough.wait())
        finally:
            self._orders.remove(pending)
        return pending.found()

    async def close(self) -> None:
        """End all streams; the clients wait for the server's return."""
        for stream in self._streams.values():
            stream.close(Notice.UNSPECIFIED, "the server stops")
        with suppress(TimeoutError):
            await asyncio.wait_for(self._emptied(), NOTICE_SECONDS)

    async def _emptied(self) -> None:
        while self._open_calls:
            await asyncio.sleep(0.01)

    async def serve(self, frames: AsyncIterator[bytes], context: Any) -> None:
        """Serve one client."""
        self._open_calls += 1
        try:
            await self._serve(context)
        except asyncio.CancelledError:
            pass  # the client has gone; gRPC would log it as an error
        finally:
            self._open_calls -= 1

    async def _serve(self, context: Any) -> None:
        hello, peer = Hello(), context.peer()  # an ended connection has none
        count = partial(self._admission.count, about=hello, context=context, peer=peer)
        try:
            hello.MergeFrom(await self._hello(context))
            stream = await self._welcome(hello, context)
            stream.count = count
        except NoticeError as end:
            await self._refuse(context, end, count)
            return
        writer, reader = asyncio.ensure_future(stream.write()), asyncio.ensure_future(self._read(stream, context))
        try:
            tasks: set[asyncio.Future[Any]] = {writer, reader, stream.end}
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if reader.done() and isinstance(error := reader.exception(), NoticeError):
                if error.kind == Notice.MALFORMED:
                    self._bar(stream.allowance)
                stream.close(error.kind, str(error))
            await cancel_all(reader)
            if stream.end.done():  # gRPC takes one write at a time; a second one would leave the call open
                await asyncio.wait({writer}, timeout=NOTICE_SECONDS)
                await self._refuse(context, stream.end.result(), count, hears=writer.done())
            await cancel_all(writer)
        finally:
            stream.is_over = True
            leaving = asyncio.ensure_future(self._leave(stream, writer, reader))  # this call may be cancelled
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)

    async def _refuse(self, context: Any, end: NoticeError, count: Count, *, hears: bool = True) -> None:
        """Log the end of a stream, and tell the client if it listens."""
        if end.kind != Notice.UNSPECIFIED:
            count(end)
        notice = ServerFrame(notice=end.notice).SerializeToString()
        with suppress(grpc.RpcError, TimeoutError):
            if hears:
                await asyncio.wait_for(context.write(notice), NOTICE_SECONDS)

    async def _welcome(self, hello: Hello, context: Any) -> ClientStream:
        """Return the stream of a client that is let in.

        Raises:
            NoticeError: It is not.
        """
        key, renew_at = self._admission.identify(hello, context)
        allowance = self._allowances.setdefault(key, Allowance(self._limits))
        if allowance.is_barred or not allowance.joins.take():
            raise self._bar(allowance)
        if not key or (node := await self._ask_store(self._node.admit, key)) is None:
            self._allowances.pop(key, None)
            raise NoticeError(Notice.NOT_ADMITTED, "the key is not registered")
        if before := self._streams.get(node):
            before.close(Notice.REPLACED, f"another client uses the same key, from {context.peer()}")
            if not before.is_over:
                allowance.joins.left = min(allowance.joins.left, 1.0)  # clients that replace each other stop no round
        allowance.node = node
        stream = self._streams[node] = ClientStream(node, context, allowance, key, renew_at)
        stream.put_frame(ServerFrame(welcome=Welcome(node=node)))
        for task in self._tasks.values():
            if task.about.node == node and task.answer is None:
                stream.put(task.frames())
        return stream

    def _bar(self, allowance: Allowance) -> NoticeError:
        """Bar a key for a time, in which its answers are not waited for; return the end of its stream."""
        if not allowance.is_barred:
            allowance.bar()
            for task in [task for task in self._tasks.values() if task.about.node == allowance.node]:
                self._miss(task, BARRED)
        return NoticeError(Notice.TOO_MANY, "this key sent too many messages or no frames, or opened too many streams")

    async def _hello(self, context: Any) -> Hello:
        try:
            frame = _parse(await asyncio.wait_for(context.read(), self._limits.hello))
        except TimeoutError:
            raise NoticeError(Notice.LATE, "no hello in time") from None
        if frame.WhichOneof("frame") != "hello":
            raise NoticeError(Notice.MALFORMED, "the first frame is no hello")
        return frame.hello

    async def _leave(self, stream: ClientStream, *tasks: "asyncio.Future[None]") -> None:
        await cancel_all(*tasks)
        if self._streams.get(stream.node) is stream:
            # not missed before its answer is taken
            await asyncio.sleep(stream.answered + FETCH_SECONDS - time.monotonic())
        if self._streams.get(stream.node) is stream:
            del self._streams[stream.node]
            self._beats.discard(stream.node)
            await self._ask_store(self._node.leave, stream.node)

    async def _read(self, stream: ClientStream, context: Any) -> None:
        """Take the frames of a client until it leaves.

        Raises:
            NoticeError: A frame is malformed, late, or one too many.
        """
        while True:
            left = stream.deadline - time.monotonic() if stream.body else self._limits.silence
            try:
                content = await asyncio.wait_for(context.read(), max(left, 0.0))
            except TimeoutError:
                self._give_up(stream)
                raise NoticeError(Notice.LATE, "a frame is late") from None
            if content is grpc.aio.EOF:
                return
            frame = _parse(content)
            if excess := stream.allowance.bytes.spend(len(content)):
                await asyncio.sleep(excess)  # its sender waits by gRPC's flow control
            try:
                self._handle(stream, frame)
            except WireError as error:
                raise NoticeError(Notice.MALFORMED, str(error)) from None
            del content, frame  # a client that waits holds no reply

    def _handle(self, stream: ClientStream, frame: ClientFrame) -> None:
        kind = frame.WhichOneof("frame")
        is_awaited = kind == "chunk" or self._is_awaited(stream, frame)
        if not is_awaited and stream.allowance.frames.spend(1):
            raise self._bar(stream.allowance)
        match kind:
            case "heartbeat":
                self._beats.add(stream.node)
            case "received":
                if task := self._task_of(stream, frame.received.task):
                    task.content = None
            case "reply":
                self._begin(stream, frame.reply)
            case "chunk":
                if stream.body is None:
                    raise WireError("a chunk without a reply")
                stream.body.add(frame.chunk)
                self._complete(stream)
            case _:
                raise WireError(f"unexpected frame {kind}")

    def _is_awaited(self, stream: ClientStream, frame: ClientFrame) -> bool:
        """Return True for the frames that an open task brings with it: as many of them are taken as of tasks."""
        received = self._task_of(stream, frame.received.task)
        replied = self._task_of(stream, frame.reply.task)
        return bool((received and received.content) or (replied and replied.answer is None))

    def _task_of(self, stream: ClientStream, identity: str) -> OpenTask | None:
        """Return an open task of this client; None for any other."""
        task = self._tasks.get(identity)
        return task if task and task.about.node == stream.node else None

    def _begin(self, stream: ClientStream, reply: Reply) -> None:
        """Accept a reply, or refuse it before its body is sent."""
        if stream.body is not None:
            raise WireError("a reply within another one")
        if reply.code < 0:  # such codes are the door's own
            raise WireError("a reply with a code below 0")
        task, identity = self._task_of(stream, reply.task), reply.task[:64]
        if task is None:
            text = "the run has ended, or no longer awaits this reply"
            stream.put_frame(ServerFrame(notice=Notice(kind=Notice.RUN_OVER, task=identity, text=text)))
        elif task.answer is not None:
            stream.put_frame(ServerFrame(received=Received(task=identity)))
        elif reply.size > (most := min(ceiling := self._limits.message_bytes, task.about.most or ceiling)):
            text = f"a reply of {reply.size:,} bytes, at most {most:,} are taken"
            text += f"; the server's owner can raise {MOST_VARIABLE}" if most == ceiling else " for this request"
            stream.put_frame(ServerFrame(notice=Notice(kind=Notice.TOO_LARGE, task=identity, text=text)))
            stream.count(NoticeError(Notice.TOO_LARGE, text))
            self._settle(task, Answer(task=identity, code=FAILED, reason=text))
        else:
            stream.reply, stream.body = reply, Assembly(reply.size, reply.data, wanted=not task.is_over)
            stream.begun, stream.is_slow = time.monotonic(), False
            stream.deadline = stream.begun + min(task.upload or math.inf, self._limits.body_seconds(reply.size))
            if not stream.body.is_complete:
                stream.put_frame(ServerFrame(go=Go(task=identity)))
            self._complete(stream)

    def _complete(self, stream: ClientStream) -> None:
        """Take a reply whose body is here in full."""
        reply, body = stream.reply, stream.body
        if reply is None or body is None or not body.is_complete:
            return
        stream.reply, stream.body, stream.answered = None, None, time.monotonic()
        if task := self._task_of(stream, reply.task):
            self._settle(
                task, Answer(task=reply.task, code=reply.code, reason=reply.reason[:2000], content=body.content)
            )
        stream.put_frame(ServerFrame(received=Received(task=reply.task)))

    def _give_up(self, stream: ClientStream) -> None:
        """Note that a reply, which has begun, did not arrive in time."""
        if task := self._task_of(stream, stream.reply.task) if stream.reply else None:
            self._miss(task, "its content did not arrive")

    def _skip_slow(self) -> None:
        """Give up the tasks of clients that have sent a reply to an ended request for as long as a silence."""
        for stream in self._streams.values():
            task = self._task_of(stream, stream.reply.task) if stream.reply else None
            if not task or not task.is_over or time.monotonic() < stream.begun + SILENCE_SECONDS:
                continue
            if not stream.is_slow:
                stream.is_slow = True
                stream.count(
                    NoticeError(Notice.LATE, "its reply is on its way after the round, which goes on without it")
                )
            for other in self._tasks.values():
                if other.about.node == stream.node and not other.is_over:
                    self._miss(other, SLOW)

    def _miss(self, task: OpenTask, reason: str) -> None:
        if task.answer is None:
            self._settle(task, Answer(task=task.about.id, code=MISSING, reason=reason))

    def _settle(self, task: OpenTask, answer: Answer) -> None:
        task.answer, task.content = answer, None
        for order in self._orders:
            order.settle(task)

    def _open(self, run: int, order: Order, elsewhere: set[int]) -> None:
        """Send new tasks to the clients that are here; known ones are of a repeated call.

        Former tasks of the run that the order does not await are over.
        """
        contents = [TaskContent(content) for content in order.contents]
        barred = {one.node for one in self._allowances.values() if one.is_barred}
        wanted = {*order.awaited, *(about.id for about in order.tasks)}
        for task in self._tasks.values():
            if task.run == run and task.about.id not in wanted:
                task.forget()
        for about in order.tasks:
            if about.id in self._tasks:
                continue
            task = self._tasks[about.id] = OpenTask(about, run, contents[about.content], order.upload)
            if stream := self._streams.get(about.node):
                stream.put(task.frames())
            elif about.node in elsewhere:
                self._settle(task, Answer(task=about.id, code=ELSEWHERE))
            elif about.node in barred:
                self._miss(task, BARRED)
        self._skip_slow()

    def _awaited(self, run: int, identities: Iterable[str]) -> Iterator[OpenTask]:
        """Yield the tasks of a run with these ids; those before the door's start have no answer."""
        for identity in identities:
            task = self._tasks.get(identity)
            if task is None or task.run != run:
                gone = Answer(task=identity, code=MISSING, reason="the server has started anew since this request")
                task = OpenTask(Addressed(id=identity), run, None, answer=gone)
            yield task

    async def _tick(self) -> None:
        beats, self._beats = self._beats, set()
        beating = asyncio.ensure_future(self._ask_store(self._node.beat, beats, [*self._streams]))
        if beating not in (await asyncio.wait({beating}, timeout=STORE_SECONDS))[0]:
            log.warning("the SuperLink's database is locked or slow; clients and rounds wait for it")
        for node in await beating:
            if stream := self._streams.get(node):
                stream.close(Notice.NOT_ADMITTED, "the key is not registered any more")
        for stream in self._streams.values():
            stream.renew(self._admission)
        self._skip_slow()
        runs = {task.run for task in self._tasks.values()}
        if ended := await self._ask_store(self._node.ended, runs) if runs else set():
            self._tasks = {one: task for one, task in self._tasks.items() if task.run not in ended}
            self._handed = {run: tasks for run, tasks in self._handed.items() if run not in ended}

    async def _ask_store(self, function: Any, *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._store, function, *arguments)


async def _at_most(seconds: float, event: Awaitable[object]) -> None:
    """Wait for an event, but no longer."""
    with suppress(TimeoutError):
        await asyncio.wait_for(event, seconds)


async def cancel_all(*tasks: "asyncio.Future[Any]") -> None:
    """Cancel tasks, and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _parse(content: Any) -> ClientFrame:
    """Return a frame.

    Raises:
        NoticeError: The client has left, or the bytes are none.
    """
    try:
        frame: ClientFrame = ClientFrame.FromString(content)
    except (DecodeError, TypeError):
        raise NoticeError(Notice.MALFORMED, "bytes that are no frame") from None
    return frame
