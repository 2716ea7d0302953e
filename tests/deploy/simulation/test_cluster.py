"""Shards of a simulation as Ray's actors, without Ray; `python -m studies speed ray_cluster` runs them on a cluster."""

import socket
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import pytest

from client.data.read import partition_read, read_all
from client.data.schemes import Scheme
from client.training import snapshot
from common.config.parse import parse
from common.errors import ConfigError
from common.options import Scalar
from deploy.cli.options import ClusterRequest
from deploy.data.sources import RunSource
from deploy.federation.here import check_cluster
from deploy.simulation import blocks as population
from deploy.simulation.blocks import ClientShard, Team, dump
from deploy.simulation.cluster import Cluster, Host, check_gpus, check_room, describe
from deploy.simulation.state import simulate_measured

SOURCE = RunSource("rules", "demo:0-20", 20, {}, "iid")


class Hosts(Team):
    """Hosts of the shards, each of which a new one replaces before every order, with the last one's state."""

    def __init__(self, shards: Sequence[ClientShard], run: str) -> None:
        self._abouts, self._run = [describe(shard, SOURCE, run, 0.0) for shard in shards], run
        self._states = [[*dump(shard.answer, run)] for shard in shards]
        check_room(shards, run, 0.0, {"memory": 2**31, "CPU": 4.0})
        for free, lack in [({"memory": 1e8}, "GB of memory"), ({"memory": 2**31, "CPU": 1.0}, "CPUs")]:
            with pytest.raises(ConfigError, match=rf"--engine ray: 2 workers need [0-9.]+ {lack}, [0-9.]+ are free; "):
                check_room(shards, run, 0.0, free)

    def ask(self, orders: Sequence[bytes]) -> list[bytes]:
        """Return the answer of each new host, whose state is kept."""
        hosts = [Host(about) for about in self._abouts]
        for host, state in zip(hosts, self._states, strict=True):
            for piece in state:
                host.answer(piece)
        answers = [host.answer(order) for host, order in zip(hosts, orders, strict=True)]
        self._states = [[*dump(host.answer, self._run)] for host in hosts]
        return answers

    def dump(self) -> Iterator[bytes]:
        """Yield the state of all shards in pieces."""
        return chain.from_iterable(self._states)

    def end(self) -> None:
        """Do nothing."""


def test_actors_that_lose_all_but_their_state_train_the_bits_of_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(population, "FOLDED_BYTES", 0)
    monkeypatch.setattr(snapshot, "MAX_BYTES", 0)  # a piece for each stack
    partitions = partition_read("rules", SOURCE.data, read_all("rules", SOURCE.data), 20, scheme=Scheme("iid"))
    flat: dict[str, Scalar] = {"run-id": "toy", "rounds": 3, "privacy.unit": "none", "federation.norm-bound": 2.0}
    one, own = simulate_measured(parse(flat), partitions, tmp_path / "one", together=8)
    both, shared = simulate_measured(parse(flat), partitions, tmp_path / "both", together=8, workers=2, engine=Hosts)
    assert (one.model_sha256, one.metrics, own) == (both.model_sha256, both.metrics, shared)


def test_what_a_cluster_lacks_is_one_line_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(ConfigError, match=rf"--address {address}: no cluster answers .*; start one with ray start"):
            Cluster(SOURCE, address)
    with pytest.raises(
        ConfigError, match=r"--gpus 0\.5: the cluster has 0 GPUs; start Ray where one is, or leave it out"
    ):
        check_gpus(0.5, {"CPU": 2.0})
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"needs Ray; install it with pip install 'fedloom\[ray\]'"):
        Cluster(SOURCE)


@pytest.mark.parametrize(
    ("request_", "on_disk", "message"),
    [
        (ClusterRequest("flock"), False, "--engine flock: unknown; use processes or ray"),
        (ClusterRequest(address="a:1"), False, "--address and --gpus belong to --engine ray"),
        (ClusterRequest("ray"), True, "remove --state-on-disk"),
    ],
)
def test_options_of_a_cluster_do_not_contradict_each_other(
    request_: ClusterRequest, on_disk: bool, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        check_cluster(request_, "cpu", on_disk=on_disk)
