"""Networks of packages behind the inputs of a task's own: they get PyTorch Geometric's `Data`.

A network trains one client at a time, in PyTorch's own autograd. Its buffers stay as they were built, since clients send
parameters alone. BatchNorm takes the statistics of the nodes at hand, in training and in evaluation.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, NoReturn

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch_geometric.data import Data

from common.errors import ConfigError, FedloomError
from common.tasks.networks import NETWORKS, label
from common.text import printable

FLOATS = torch.float32, torch.float64, torch.float16, torch.bfloat16

REMEDY = "correct the package, or remove --model"


class PackageNetwork(nn.Module):
    """Network of a package; a task's adapter makes its `Data` from the inputs of the task's own networks.

    Args:
        name: Name of the network.
        inputs: Number of inputs, for the network.
        outputs: Number of outputs of each row, for the network.
        noised: True if the run adds noise.

    Raises:
        ConfigError: The package fails, or its network cannot be trained in this run.
    """

    def __init__(self, name: str, inputs: int, outputs: int, *, noised: bool) -> None:
        super().__init__()
        self.label, self.outputs, self.is_checked = label(name), outputs, False
        try:
            network: Any = NETWORKS[name].build(inputs, outputs)
        except (Exception, SystemExit) as error:
            self._refuse("cannot be built", error)
        if not isinstance(network, nn.Module):
            self._refuse(f"is built as {type(network).__name__}; return a module of torch.nn")
        self.network = network.eval()
        for norm, module in network.named_modules():
            if isinstance(module, _BatchNorm):
                self._settle_(norm, module, noised)

    def check_on(self, data: Data, rows: int) -> None:
        """Check an example's output and gradients, the parameters, and that nothing else changes.

        Raises:
            ConfigError: The network cannot be trained, or its output depends on more than parameters, data and seed.
        """
        seed, inputs = torch.randint(2**62, ()), data.to_dict()
        before = [{n: t.clone() for n, t in some.items()} for some in (inputs, dict(self.network.named_buffers()))]
        found: tuple[Tensor | None, ...] = ()
        outputs = []
        for _ in range(3):  # lazy modules build their parameters in the first pass
            with self.step(seed):
                outputs.append(self.compute(copy(data), rows))
                parameters = self._check_parameters()
                if outputs[-1].requires_grad:
                    found = torch.autograd.grad(outputs[-1].sum(), parameters, allow_unused=True)
        if all(gradient is None for gradient in found):
            self._refuse("gives no parameter a gradient; return what the parameters compute, without detach or no_grad")
        after = inputs, dict(self.network.named_buffers())
        for kind, old, new in zip(("input", "buffer"), before, after, strict=True):
            for name, tensor in old.items():
                if not torch.equal(tensor, new.get(name, tensor)):
                    self._refuse(f"changes the {kind} '{name}' in training, and only parameters may change; use a copy")
        if not outputs[2].isfinite().all():
            self._refuse("returns NaN or infinity on an example; bound its numbers")
        if not torch.equal(outputs[1], outputs[2]):
            self._refuse(
                "returns other numbers for equal data and seed; keep no state, and draw from torch's generator"
            )
        self.is_checked = True

    def compute(self, data: Data, rows: int) -> Tensor:
        """Return the network's output, rows × outputs.

        Raises:
            ConfigError: It fails, or the output is of another form.
        """
        for module in self.network.modules():
            for name, buffer in module.named_buffers(recurse=False):
                setattr(module, name, buffer.to(data.x.device))
        try:
            output: Any = self.network(data)
        except (Exception, SystemExit) as error:
            self._refuse("fails in forward", error)
        form, found = (rows, self.outputs), type(output).__name__
        if isinstance(output, Tensor):
            found = f"{tuple(output.shape)} of {output.dtype}, {output.layout} on {output.device}"
            is_dense = output.layout == torch.strided and output.device == data.x.device
            if tuple(output.shape) == form and output.dtype in FLOATS and is_dense:
                return output
        fault = f"{found}; return one tensor of floats of shape {form} on {data.x.device}"
        self._refuse(f"returns {'another form than on the example' if self.is_checked else fault}")  # no row counts

    @contextmanager
    def step(self, seed: Tensor) -> Iterator[None]:
        """Let the network train inside the block, with random numbers of this seed.

        Raises:
            ConfigError: The network fails, such as where its gradient is computed.
        """
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.manual_seed(int(seed))
            self.network.train()
            try:
                yield
            except FedloomError:
                raise
            except Exception as error:
                self._refuse("fails in training", error)
            finally:
                self.network.eval()

    def _check_parameters(self) -> list[Tensor]:
        parameters = dict(self.network.named_parameters())
        for name, p in parameters.items():
            if not p.requires_grad:
                self._refuse(f"has the frozen parameter '{name}'; register it as a buffer, which stays as it is built")
            if p.dtype not in FLOATS[:2] or p.is_meta or not p.dim() or not p.isfinite().all():
                form = f"{p.dtype} and shape {tuple(p.shape)} on {p.device}"
                self._refuse(
                    f"has the parameter '{name}' of {form}; build finite float32 numbers, not a scalar, on the CPU"
                )
        return [*parameters.values()]

    def _settle_(self, name: str, norm: "_BatchNorm", noised: bool) -> None:
        if noised:
            self._refuse(f"has BatchNorm in '{name}', which mixes records and noise does not cover; use LayerNorm")
        norm.track_running_stats = False
        norm.running_mean = norm.running_var = norm.num_batches_tracked = None

    def _refuse(self, fault: str, error: BaseException | None = None) -> NoReturn:
        if error:  # after the example its text may hold data: then it is in the log alone
            fault += f" ({type(error).__name__}{'' if self.is_checked else printable(f': {error}')})"
        raise ConfigError(f"{self.label} {fault}; {REMEDY}") from error


class RulesNetwork(PackageNetwork):
    """Network of task `rules`: logits of every relation for pairs of devices of homes.

    Its data are homes as one graph. `x`: one-hot device types, nodes × F. `edge_index`: training rules from trigger to action,
    with their number in `edge_weight`. `batch`: home of each node. `edge_label_index`: pairs of devices whose rules it scores.
    """

    def __init__(self, name: str, entities: int, relations: int, *, noised: bool) -> None:
        super().__init__(name, entities, relations, noised=noised)
        x, adj = torch.eye(entities)[torch.arange(3) % entities].unsqueeze(0), torch.zeros(1, 3, 3)
        adj[0, 1, 0] = adj[0, 2, 1] = 1
        data, _ = graph_of_homes(x, adj)
        data.edge_label_index = torch.tensor([[0, 1, 2, 0], [1, 2, 0, 2]])
        self.check_on(data, 4)

    def forward(self, x: Tensor, adj: Tensor, keep: Tensor, triples: Tensor | None) -> Tensor:
        """Compute logits of triples, or of every rule; see `RuleRecommender.forward`. `keep` is not used."""
        data, node = graph_of_homes(x, adj)
        if triples is not None:
            ends = node.unsqueeze(-1).gather(1, triples[..., :2].reshape(len(x), -1, 1)).reshape(*triples.shape[:2], 2)
            data.edge_label_index = ends.reshape(-1, 2).T.clamp(min=0)
            logits = self.compute(data, data.edge_label_index.shape[1])
            return logits.gather(1, triples[..., 2].reshape(-1, 1)).reshape(triples.shape[:2])
        is_node = node >= 0
        home, first, second = (is_node.unsqueeze(2) & is_node.unsqueeze(1)).nonzero().unbind(1)
        data.edge_label_index = torch.stack([node[home, first], node[home, second]])
        logits = self.compute(data, len(home))
        every = logits.new_zeros(*adj.shape, self.outputs)
        return every.index_put((home, first, second), logits)


def graph_of_homes(x: Tensor, adj: Tensor) -> tuple[Data, Tensor]:
    """Return padded homes as one graph, and the node of each position, H × N; −1 for padding.

    Args:
        x: One-hot device types, H × N × F; zeros for padding.
        adj: Number of rules u → v as `adj[h, v, u]`, H × N × N.
    """
    is_node = x.any(-1)
    node = torch.where(is_node, (is_node.flatten().cumsum(0) - 1).view_as(is_node), -1)
    home, action, trigger = adj.nonzero().unbind(1)
    edges = torch.stack([node[home, trigger], node[home, action]])
    weights = adj[home, action, trigger]
    return Data(x[is_node], edges, edge_weight=weights, batch=is_node.nonzero()[:, 0]), node


class SessionsNetwork(PackageNetwork):
    """Network of task `sessions`: logits of all items for each session.

    Its data are sessions as one graph. `x`: item of each node, nodes × 1, from 0. `edge_index`: from click to next click;
    `edge_weight`: 1 over the number of edges into the node. `batch`: session of each node. `click` and `click_batch`: node and
    session of each click, in order; `last`: node of each session's last click.
    """

    def __init__(self, name: str, items: int, *, noised: bool) -> None:
        super().__init__(name, items, items, noised=noised)
        nodes = torch.tensor([0, 1, min(2, items), 1])  # sessions of two items and of one
        clicks = torch.tensor([1, 2, 1, 3]), torch.tensor([1, 1, 1, 2])
        edges = torch.tensor([[1, 2], [2, 1]])
        self.check_on(graph_of_sessions(nodes, edges, torch.ones(2), *clicks, torch.tensor([1, 3])), 2)

    def forward(
        self, nodes: Tensor, edges: Tensor, w_in: Tensor, w_out: Tensor, clicks: Tensor, owner: Tensor, last: Tensor
    ) -> Tensor:
        """Compute logits of all items; see `SRGNN.forward`."""
        return self.compute(graph_of_sessions(nodes, edges, w_in, clicks, owner, last), len(last))


def graph_of_sessions(
    nodes: Tensor, edges: Tensor, weights: Tensor, clicks: Tensor, owner: Tensor, last: Tensor
) -> Data:
    """Return sessions as one graph without the padding of `SRGNN.forward`."""
    position = (nodes > 0).cumsum(0) - 1
    is_click, is_edge = owner > 0, (nodes[edges] > 0).all(0)
    clicked, session = position[clicks[is_click]], owner[is_click] - 1
    batch = torch.zeros(int((nodes > 0).sum()), dtype=torch.int64).scatter(0, clicked, session)
    return Data(
        (nodes[nodes > 0] - 1).unsqueeze(1),
        position[edges[:, is_edge]],
        edge_weight=weights[is_edge],
        batch=batch,
        click=clicked,
        click_batch=session,
        last=position[last].clamp(min=0),
    )


class MarketsNetwork(PackageNetwork):
    """Network of task `markets`: embeddings of items, whose inner products rank related items.

    Its data are a market. `x`: item features, n × width. `edge_index`: related items, in both directions, with the number of
    users in `edge_weight` if `adjacency=counts`, else 1.
    """

    def __init__(self, name: str, width: int, embedding: int, *, noised: bool) -> None:
        super().__init__(name, width, embedding, noised=noised)
        edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        self.check_on(Data(torch.eye(3, width), edges, edge_weight=torch.ones(4)), 3)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        """Embed all items, n × width -> n × k; edges 2 × E."""
        return self.compute(Data(x, edge_index, edge_weight=edge_weight), len(x))
