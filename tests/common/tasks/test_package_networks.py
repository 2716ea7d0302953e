"""Networks of packages: their data, what is refused, and training without stacks in three tasks."""

import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch_geometric.data import Data
from torch_geometric.nn import SGConv, global_add_pool
from torch_geometric.utils import to_dense_adj

from client.enrolment import SharedModel
from client.tasks.learner import shell
from common.config.parse import flatten, parse
from common.errors import ConfigError, WireError
from common.models import parameters
from common.options import Scalar
from common.tasks.networks import NETWORKS, NetworkSpec
from common.tasks.package_networks import MarketsNetwork, RulesNetwork, SessionsNetwork, graph_of_sessions
from common.tasks.registry import TASKS
from common.tasks.rules.vocabulary import demo_catalogue
from deploy.cli.options import RunRequest
from deploy.federation.request import resolve
from fedloom import simulate
from tests.support.configurations import refusal
from tools.pages import ROOT

Build = Callable[[int, int], nn.Module]


class Pairs(nn.Module):
    """Linear scores of pairs of devices."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.layer, self.drop = nn.Linear(2 * inputs, outputs), nn.Dropout(0.5)

    def forward(self, data: Data) -> Tensor:
        assert data.edge_label_index is not None
        i, j = data.edge_label_index
        scores: Tensor = self.layer(self.drop(torch.cat([data.x[i], data.x[j]], dim=-1)))
        return scores


class Sessions(nn.Module):
    """Sum of the embeddings of a session's items."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.items = nn.Embedding(inputs, 8)

    def forward(self, data: Data) -> Tensor:
        pooled = global_add_pool(self.items(data.x[:, 0]), data.batch, len(data.last))
        scores: Tensor = pooled @ self.items.weight.T
        return scores


class Market(nn.Module):
    """SGC of PyTorch Geometric."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.layer = SGConv(inputs, outputs, K=2, bias=False)

    def forward(self, data: Data) -> Tensor:
        z: Tensor = self.layer(data.x, data.edge_index, data.edge_weight)
        return z


class Changed(Pairs):
    """Pairs whose output or state a fault changes."""

    def __init__(self, inputs: int, outputs: int, change: Callable[[Any, Tensor], Tensor]) -> None:
        super().__init__(inputs, outputs)
        self.register_buffer("seen", torch.zeros(()))
        self.change = change

    def forward(self, data: Data) -> Tensor:
        self.data = data
        return self.change(self, super().forward(data))


def failing(*_: Any) -> Any:
    raise RuntimeError("a value of the data")


DRAWS = count(1)


def change_input(network: Any, scores: Tensor) -> Tensor:
    network.data.x.mul_(2)
    return scores


def with_parameter(network: nn.Module, numbers: Tensor) -> nn.Module:
    network.register_parameter("further", nn.Parameter(numbers))
    return network


def count_up(network: Any, scores: Tensor) -> Tensor:
    network.seen += 1
    return scores


FAULTS: dict[str, tuple[Build, str]] = {
    "build": (failing, r"cannot be built \(RuntimeError: a value of the data\)"),
    "no module": (lambda f, r: cast(nn.Module, Pairs), "is built as type; return a module of torch.nn"),
    "forward": (
        lambda f, r: Changed(f, r, failing),
        r"fails in forward \(RuntimeError: a value of the data\);",
    ),
    "exit": (lambda f, r: Changed(f, r, lambda *_: sys.exit(3)), r"fails in forward \(SystemExit: 3\);"),
    "shape": (
        lambda f, r: Changed(f, r, lambda network, scores: scores[:, 1:]),
        r"returns \(4, 2\) of torch.float32, torch.strided on cpu; return one tensor of floats of shape \(4, 3\) on cpu",
    ),
    "no tensor": (lambda f, r: Changed(f, r, lambda network, scores: 1), "returns int; return one tensor"),
    "integers": (lambda f, r: Changed(f, r, lambda network, scores: scores.long()), r"returns \(4, 3\) of torch.int64"),
    "device": (
        lambda f, r: Changed(f, r, lambda network, scores: scores.to("meta")),
        ".* torch.strided on meta; return",
    ),
    "not a number": (lambda f, r: Changed(f, r, lambda network, scores: scores / 0), "returns NaN or infinity"),
    "in place": (
        lambda f, r: Changed(f, r, lambda network, scores: scores.exp().sqrt().zero_()),
        r"fails in training \(RuntimeError: one of the variables needed for gradient computation",
    ),
    "state": (
        lambda f, r: Changed(f, r, lambda network, scores: scores * next(DRAWS)),
        "returns other numbers for equal data and seed; keep no state, and draw from torch's generator",
    ),
    "input": (
        lambda f, r: Changed(f, r, change_input),
        "changes the input 'x' in training, and only parameters may change; use a copy",
    ),
    "frozen": (
        lambda f, r: Pairs(f, r).requires_grad_(False),
        "has the frozen parameter 'layer.weight'; register it as",
    ),
    "scalar": (
        lambda f, r: with_parameter(Pairs(f, r), torch.zeros(())),
        r"has the parameter 'further' of torch.float32 and shape \(\) on cpu; build finite float32 numbers, not a scalar",
    ),
    "complex": (
        lambda f, r: with_parameter(Pairs(f, r), torch.zeros(3, dtype=torch.complex64)),
        "has the parameter 'further' of torch.complex64",
    ),
    "no gradient": (
        lambda f, r: Changed(f, r, lambda network, scores: scores.detach()),
        "gives no parameter a gradient; return what the parameters compute",
    ),
    "buffer": (lambda f, r: Changed(f, r, count_up), "changes the buffer 'seen' in training"),
    "noise": (
        lambda f, r: nn.Sequential(Pairs(f, r), nn.BatchNorm1d(r)),
        "has BatchNorm in '1', which mixes records and noise does not cover; use LayerNorm",
    ),
}


Add = Callable[[str, str, Build], None]


@pytest.fixture
def add(monkeypatch: pytest.MonkeyPatch) -> Add:
    """Return the function that adds a network for one test."""
    monkeypatch.setattr(NETWORKS, "_added", set())
    return lambda name, task, build: NETWORKS.add(NetworkSpec(name, task, "Toy", build))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_names_the_package_and_the_remedy(add: Add, fault: str) -> None:
    build, message = FAULTS[fault]
    add("faulty", "rules", build)
    with pytest.raises(ConfigError, match=f"network 'faulty' of this process {message}") as raised:
        RulesNetwork("faulty", 5, 3, noised=fault == "noise")
    assert str(raised.value).endswith("; correct the package, or remove --model")


def test_what_a_network_finds_in_data_stays_out_of_messages(add: Add) -> None:
    add("late", "rules", lambda f, r: Changed(f, r, lambda n, scores: scores if len(n.data.x) < 4 else failing()))
    add("short", "rules", lambda f, r: Changed(f, r, lambda n, scores: scores if len(n.data.x) < 4 else scores[1:]))
    data = torch.eye(5).unsqueeze(0), torch.zeros(1, 5, 5), torch.ones(()), None
    with pytest.raises(ConfigError, match=r"'late' of this process fails in forward \(RuntimeError\);"):
        RulesNetwork("late", 5, 3, noised=False)(*data)
    with pytest.raises(ConfigError, match=r"'short' of this process returns another form than on the example;"):
        RulesNetwork("short", 5, 3, noised=False)(*data)


def test_lazy_modules_follow_the_run_s_seed(add: Add) -> None:
    add("lazy", "rules", lambda f, r: nn.Sequential(Pairs(f, r), nn.LazyLinear(r)))
    found = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        found.append(RulesNetwork("lazy", 5, 3, noised=False).state_dict()["network.1.weight"])
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def test_buffers_follow_the_data_to_a_device(add: Add) -> None:
    class Scaled(nn.Module):
        def __init__(self, inputs: int, outputs: int) -> None:
            super().__init__()
            self.layer = nn.Linear(inputs, outputs)
            self.register_buffer("scale", torch.ones(outputs))

        def forward(self, data: Data) -> Tensor:
            return cast(Tensor, self.layer(data.x)) * self.scale

    add("scaled", "markets", Scaled)
    network = MarketsNetwork("scaled", 4, 3, noised=False)
    there = {name: p.to("meta") for name, p in network.named_parameters()}
    data = (
        torch.ones(5, 4, device="meta"),
        torch.zeros(2, 6, dtype=torch.int64, device="meta"),
        torch.ones(6).to("meta"),
    )
    assert functional_call(network, there, data).shape == (5, 3)


def test_batch_norm_takes_the_statistics_at_hand_without_noise(add: Add) -> None:
    add("norm", "rules", lambda f, r: nn.Sequential(Pairs(f, r), nn.BatchNorm1d(r)))
    network = RulesNetwork("norm", 5, 3, noised=False)
    assert [*network.buffers()] == []


def test_triples_are_entries_of_all_rules_and_padding_has_none(add: Add) -> None:
    add("pairs", "rules", Pairs)
    network = RulesNetwork("pairs", 3, 4, noised=True)
    x = torch.eye(3)[torch.tensor([[0, 1, 2], [2, 2, 0]])]
    x[1, 2] = 0
    adj = torch.zeros(2, 3, 3)
    adj[0, 1, 0], adj[1, 0, 1] = 1, 2
    every = network(x, adj, torch.ones(()), None)
    triples = torch.tensor([[[0, 1, 3], [2, 0, 1]], [[1, 0, 2], [0, 0, 0]]])
    found = network(x, adj, torch.ones(()), triples)
    assert torch.equal(found, torch.stack([every[h][tuple(triples[h].T)] for h in range(2)]))
    assert not every[1, 2].any()
    assert not every[1, :, 2].any()


def test_sessions_are_graphs_without_padding(add: Add) -> None:
    nodes, edges = torch.tensor([0, 4, 9, 4, 0]), torch.tensor([[1, 2, 0], [2, 1, 0]])
    clicks, owner = torch.tensor([1, 2, 1, 3, 0]), torch.tensor([1, 1, 1, 2, 0])
    data = graph_of_sessions(nodes, edges, torch.tensor([0.5, 1.0, 0.0]), clicks, owner, torch.tensor([1, 3]))
    assert data.x.tolist() == [[3], [8], [3]]
    assert to_dense_adj(data.edge_index, edge_attr=data.edge_weight, max_num_nodes=3).tolist() == [
        [[0, 0.5, 0], [1, 0, 0], [0, 0, 0]]
    ]
    assert (data.batch.tolist(), data.last.tolist()) == ([0, 0, 1], [0, 2])
    assert (data.click.tolist(), data.click_batch.tolist()) == ([0, 1, 0, 2], [0, 0, 0, 1])
    add("sum", "sessions", Sessions)
    SessionsNetwork("sum", 9, noised=True)


NARROW = {"tasks.markets.width": 16, "tasks.markets.embedding": 8}
NOISE = {"privacy.unit": "record", "privacy.epsilon": 1e6}


@pytest.mark.parametrize(
    ("task", "build", "metric", "settings"),
    [("rules", Pairs, "auc", {}), ("sessions", Sessions, "hr20", NOISE), ("markets", Market, "mrr20", NARROW)],
)
def test_a_network_trains_in_each_task(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    add: Add,
    task: str,
    build: Build,
    metric: str,
    settings: dict[str, Scalar],
) -> None:
    monkeypatch.chdir(tmp_path)
    add("toy", task, build)
    options = {"method": "fedavg", "rounds": 2, "alone": False, "settings": settings}
    data = {"rules": "demo:0-20", "sessions": "demo:0-4", "markets": "demo:0-2"}[task]  # few homes have held-out rules
    run = simulate(task, data=data, model="toy", **options)
    assert run.result.model == "toy"
    assert 0 <= run.metrics[metric] <= 1
    if task == "rules":
        again = simulate(task, data=data, model="toy", together=1, **options)
        assert again.result.model_sha256 == run.result.model_sha256, "dropout has the run's seed"


def test_a_network_is_for_its_task_and_for_methods_that_train_it(add: Add) -> None:
    add("toy", "rules", Pairs)
    assert (resolve(RunRequest(model="toy"), {}).task, resolve(RunRequest(model="toy"), {}).method) == (
        "rules",
        "fedrule",
    )
    assert "network 'toy' of this process does not apply to task 'sessions'; set task=rules" in refusal(
        {"task": "sessions", "method": "fedavg", "model": "toy"}
    )
    assert "name a method that trains, such as fedavg" in refusal({"method": "ridge", "model": "toy"})
    assert "unknown model 'toi'; did you mean 'toy'?" in refusal({"model": "toi"})
    assert parse({"model": "toy", "privacy.unit": "record"}).privacy.unit == "record"


def test_a_network_of_another_name_or_task_is_refused_and_a_new_one_replaces_the_last(add: Add) -> None:
    with pytest.raises(ConfigError, match="network 'paper' has the name of a model of fedloom; choose another name"):
        add("paper", "rules", Pairs)
    with pytest.raises(ConfigError, match="network 'toy': unknown task 'rule'; did you mean 'rules'"):
        add("toy", "rule", Pairs)
    run = parse({"method": "fedavg"}).task_run(TASKS["rules"], demo_catalogue())
    shells = []
    for build in (Pairs, lambda f, r: nn.Sequential(Pairs(f, r), nn.Linear(r, r))):
        add("toy", "rules", build)
        shells.append(shell(TASKS["rules"], replace(run, model="toy")))
    assert [len([*found.parameters()]) for found in shells] == [2, 4]
    with pytest.raises(
        WireError, match=r"'toy' of this process, whose version must be the server's: arrays .* unknown"
    ):
        SharedModel().check(parameters(shells[0]), shells[1])


PAPERS = {
    "rules": ("fedrule", "tasks.rules.negatives=1"),
    "sessions": ("fedga", "tasks.sessions.loss=full"),
    "traffic": ("fedstl", "tasks.traffic.property=paper"),
    "ratings": ("bgtplanner", "tasks.ratings.embedding-std=0.3"),
    "markets": ("pfgnn", "tasks.markets.adjacency=counts"),
}


@pytest.mark.parametrize("task", PAPERS)
def test_the_papers_model_is_one_option(task: str) -> None:
    method, setting = PAPERS[task]
    config = resolve(RunRequest(task=task, model="paper"), {}, helpers=True)
    assert (config.method, config.model) == (method, "paper")
    named = resolve(RunRequest(task=task, method=method, model="paper", rounds=7), {})
    assert named.model_copy(update={"run_id": "", "rounds": config.rounds}) == config.model_copy(update={"run_id": ""})
    other = resolve(RunRequest(task=task, method="fedavg", model="paper"), {})
    assert (other.method, other.rounds) == ("fedavg", 30)
    key, _, value = setting.partition("=")
    assert str(flatten(config)[key]) == str(flatten(other)[key]) == value


def test_the_example_is_short_and_names_its_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ROOT / "examples" / "sage-network"
    files = [*folder.rglob("*.py")]
    assert sum(len(file.read_text("utf-8").splitlines()) for file in files) < 60
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(NETWORKS, "_added", set())
    NETWORKS.add(import_module("sage_network").NETWORK)
    network = RulesNetwork("sage", 5, 3, noised=True)
    logits = network(torch.eye(5)[None, :4], torch.zeros(1, 4, 4), torch.ones(()), None)
    assert logits.shape == (1, 4, 4, 3)
    assert NETWORKS["sage"].task == "rules"
