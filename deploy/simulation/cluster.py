"""Shards of a simulation as Ray actors, on one machine or on a cluster; Ray is an extra.

An actor reads its clients' data from the source of the run, which each machine must have under the same name.
"""

import json
import logging
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from types import ModuleType
from typing import Any

import torch

from client.data.read import partition_read, read_all
from client.data.schemes import scheme_of
from client.data.tables.schema import Dialect
from client.enrolment import ENROLMENT
from common.errors import ConfigError, RunError
from common.models import parameters
from common.tasks.registry import read_vocabulary
from common.text import count
from common.wire.messages import EnrolRequest
from deploy.data.sources import RunSource
from deploy.simulation.blocks import ClientShard, Team, dump
from deploy.simulation.clients import open_sessions
from server.exchange.flower import identify_process

log = logging.getLogger("fedloom.server")

REACH_SECONDS, START_SECONDS = 5.0, 900.0
"""Longest waits for a cluster's address, and for an actor that reads its data and catches up."""

REPLAYED = 16
"""Number of rounds and evaluations between two fetches of state; a lost actor repeats them."""

PROCESS_BYTES, CLIENT_BYTES, HELD_VECTORS = 400 * 2**20, 40_000, 6
"""Estimate of an actor's memory: of a process, of a client's data, and its vectors like the model."""

GIB = 2**30


class Host:
    """ClientShard in an actor; its clients read their data, and enrol, when it starts.

    Args:
        about: JSON of the source, of the run's invitation and of the shard.
    """

    def __init__(self, about: str) -> None:
        torch.set_num_threads(1)
        identify_process()
        found = json.loads(about)
        source, invitation = RunSource(**found["source"]), EnrolRequest(**found["invitation"])
        vocabulary, dialect = read_vocabulary(source.task, invitation.catalogue), Dialect.of(**source.dialect)
        whole = read_all(source.task, source.data, vocabulary=vocabulary, dialect=dialect)
        scheme = scheme_of(source.scheme)
        partitions = partition_read(source.task, source.data, whole, source.clients, dialect, scheme)
        sums = {int(number): blocks for number, blocks in found["sums"].items()}
        nodes = {node for blocks in sums.values() for block in blocks for node in block}
        sessions, _ = open_sessions(partitions, device=found["device"], nodes=nodes)
        for session in sessions.values():
            session.enrol(invitation)
        self._shard = ClientShard(sessions, sums, found["together"], found["evaluated"])

    def answer(self, order: bytes) -> bytes:
        """Return the answer to an order, as `ClientShard.answer` does."""
        return self._shard.answer(order)


class Cluster:
    """Ray, on this machine or at an address; an `Engine` of populations.

    Args:
        source: Data of the run.
        address: Address of a cluster, `HOST:PORT`; empty for a Ray of its own on this machine.
        gpus: Share of a GPU for each actor; 0 trains on processors.

    Raises:
        ConfigError: Ray is not installed, or no cluster answers at the address.
    """

    def __init__(self, source: RunSource, address: str = "", gpus: float = 0.0) -> None:
        self._source, self._gpus, self._ray = source, gpus, _import_ray()
        if address:
            _reach(address)
        try:
            self._ray.init(address or "local", logging_level=logging.ERROR, log_to_driver=False, namespace="fedloom")
        except Exception as error:  # Ray raises plain ones, too
            raise ConfigError(
                f"--engine ray: {str(error).partition(chr(10))[0]}; see ray status, or leave it out"
            ) from None

    @property
    def processors(self) -> int:
        """Number of processors of the cluster; a `ConfigError` if it lacks the GPUs of an actor."""
        resources = self._ray.cluster_resources()
        check_gpus(self._gpus, resources)
        return int(resources.get("CPU", 0))

    def __call__(self, shards: Sequence[ClientShard], run: str) -> Team:
        """Return the shards as actors, with the state of their clients.

        Raises:
            ConfigError: The cluster has too little memory, or too few processors or GPUs; nothing has started.
        """
        check_room(shards, run, self._gpus, self._ray.available_resources())
        abouts = [describe(shard, self._source, run, self._gpus) for shard in shards]
        return TeamOfActors(self._ray, abouts, shards, run, self._gpus)

    def close(self) -> None:
        """End the connection, and a Ray of its own."""
        self._ray.shutdown()


def describe(shard: ClientShard, source: RunSource, run: str, gpus: float) -> str:
    """Return what the `Host` of a shard needs, as JSON."""
    invitation = _invitation(shard, run)
    invitation.pop("enrolment")
    about = {"source": asdict(source), "invitation": invitation, "sums": shard.sums, "together": shard.together}
    return json.dumps({**about, "evaluated": shard.evaluated, "device": "cuda" if gpus else "cpu"})


def check_gpus(share: float, resources: Mapping[str, float]) -> None:
    """Check that a cluster with these resources has the GPUs of one actor.

    Raises:
        ConfigError: It has not.
    """
    if share > (found := resources.get("GPU", 0.0)):
        raise ConfigError(f"--gpus {share:g}: the cluster has {found:g} GPUs; start Ray where one is, or leave it out")


def check_room(shards: Sequence[ClientShard], run: str, gpus: float, free: Mapping[str, float]) -> None:
    """Check that a cluster has room for all shards; `free` are its resources by Ray's names.

    Raises:
        ConfigError: It has not.
    """
    session = shards[0].sessions[shards[0].nodes[0]]
    learner = session.runs.find(_invitation(shards[0], run)["enrolment"]).learner
    client = CLIENT_BYTES + HELD_VECTORS * sum(a.nbytes for a in parameters(learner.module).values())
    needed = PROCESS_BYTES * len(shards) + client * sum(len(shard.nodes) for shard in shards)
    wanted = {
        "memory": (needed, GIB, "GB of memory"),
        "CPU": (len(shards), 1, "CPUs"),
        "GPU": (len(shards) * gpus, 1, "GPUs"),
    }
    for kind, (amount, unit, noun) in wanted.items():
        if amount > free.get(kind, 0.0):
            lacks = f"{count(len(shards), 'worker')} need {amount / unit:.3g} {noun}"
            remedy = "simulate fewer --clients" if kind == "memory" else "use fewer --workers"
            raise ConfigError(
                f"--engine ray: {lacks}, {free.get(kind, 0.0) / unit:.3g} are free; add a machine, or {remedy}"
            )


def _invitation(shard: ClientShard, run: str) -> dict[str, Any]:
    return dict(json.loads(shard.sessions[shard.nodes[0]].store.read(run, ENROLMENT)))


class TeamOfActors(Team):
    """Shards as actors. A lost one is made anew: its state is loaded, and what followed it is repeated.

    Args:
        ray: The module.
        abouts: Description of each shard; see `Host`.
        shards: The shards in this process, with the state of their clients at the start.
        run: Name of the run.
        gpus: Share of a GPU for each.
    """

    def __init__(
        self, ray: ModuleType, abouts: Sequence[str], shards: Sequence[ClientShard], run: str, gpus: float
    ) -> None:
        self._ray, self._abouts, self._run, self._gpus = ray, abouts, run, gpus
        self._states = [[ray.put(piece) for piece in dump(shard.answer, run)] for shard in shards]
        self._since: list[list[bytes]] = [[] for _ in shards]
        self.actors = [self._start(k) for k in range(len(shards))]

    def ask(self, orders: Sequence[bytes]) -> list[bytes]:
        """Return the answer of each actor.

        Raises:
            RunError: An actor has failed, or none takes the place of a lost one.
        """
        asked = [actor.answer.remote(order) for actor, order in zip(self.actors, orders, strict=True)]
        answers = [self._get(k, answer, order) for k, (answer, order) in enumerate(zip(asked, orders, strict=True))]
        for since, order in zip(self._since, orders, strict=True):
            since.append(order)
        if len(self._since[0]) >= REPLAYED:
            for _ in self.dump():
                pass
        return answers

    def dump(self) -> Iterator[bytes]:
        """Yield the state of all shards in pieces, which Ray's store keeps; a lost shard goes on from them."""
        for k in range(len(self.actors)):
            state = []
            for piece in dump(partial(self._answer, k), self._run):
                state.append(self._ray.put(piece))
                yield piece
            self._states[k], self._since[k] = state, []

    def end(self) -> None:
        """End the actors."""
        for actor in self.actors:
            self._ray.kill(actor)

    def _answer(self, k: int, order: bytes) -> bytes:
        answer = self._get(k, self.actors[k].answer.remote(order), order)
        self._since[k].append(order)  # a new actor is at the same piece after it
        return answer

    def _get(self, k: int, answer: Any, order: bytes) -> bytes:
        lost, failed = self._ray.exceptions.RayActorError, self._ray.exceptions.RayTaskError
        name = f"worker {k + 1} of {len(self._abouts)}"
        try:
            with suppress(lost):
                return bytes(self._ray.get(answer))
            log.warning("%s is lost; another one repeats %s", name, count(len(self._since[k]), "step"))
            self.actors[k] = self._start(k)
            for earlier in self._since[k]:
                self.actors[k].answer.remote(earlier)
            return bytes(self._ray.get(self.actors[k].answer.remote(order), timeout=START_SECONDS))
        except failed as error:
            reason = str(error.cause).partition("\n")[0]
            raise RunError(f"{name} has failed ({reason}); continue with --resume, without --engine ray") from error
        except (lost, self._ray.exceptions.GetTimeoutError) as error:
            raise RunError(f"{name} is lost, and none replaces it; add a machine and continue with --resume") from error

    def _start(self, k: int) -> Any:
        actor = self._ray.remote(Host).options(num_cpus=1, num_gpus=self._gpus).remote(self._abouts[k])
        for piece in self._states[k]:
            actor.answer.remote(piece)
        return actor


def _import_ray() -> ModuleType:
    try:
        import ray
    except ModuleNotFoundError:
        raise ConfigError("--engine ray needs Ray; install it with pip install 'fedloom[ray]'") from None
    return ray


def _reach(address: str) -> None:
    """Check that something answers at an address.

    Raises:
        ConfigError: Nothing does.
    """
    host, _, port = address.rpartition("//")[2].rpartition(":")
    try:
        socket.create_connection((host, int(port)), REACH_SECONDS).close()
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"--address {address}: no cluster answers ({error}); start one with ray start --head, and name HOST:PORT"
        ) from None
