"""Untrained runs of every model of every task."""

from collections.abc import Iterator
from typing import Any, get_args

from client.data.read import read_all
from common.config.parse import parse
from common.models import build_model, parameters
from common.options import Scalar
from common.tasks.options import VARIANTS
from common.tasks.registry import TASKS
from deploy.tasks.spec import TrainedRun

SMALL: dict[str, Scalar] = {"hidden": 4, "history": 6, "horizon": 2, "width": 8, "embedding": 4}
"""Sizes of models, by name of an option; a task has some of them."""


def models(task: str) -> Iterator[dict[str, Scalar]]:
    """Yield the options of every model of a task: each variant with each network."""
    fields = TASKS[task].options.model_fields
    networks = get_args(fields["network"].annotation) if "network" in fields else ()
    sizes = {f"tasks.{task}.{name}": value for name, value in SMALL.items() if name in fields}
    for variant in VARIANTS:
        for network in networks or ("",):
            chosen = {f"tasks.{task}.network": network} if network else {}
            yield {"task": task, "method": "fedavg", "model": variant, **sizes, **chosen}


ALL = [options for task in TASKS for options in models(task)]


def untrained(options: dict[str, Scalar], data: str = "demo:0-2") -> TrainedRun:
    config = parse({**options, "run-id": "r1"})
    spec = TASKS[config.task]
    model = parameters(build_model(spec, config.task_run(spec, spec.demo())))

    def read(test: str) -> Any:
        return read_all(config.task, data, vocabulary=spec.demo())

    return TrainedRun("r1", config, spec.demo(), model, data, read, lambda client: None)


def describe(options: dict[str, Scalar]) -> str:
    return "-".join(str(value) for key, value in options.items() if not isinstance(value, int) and value != "fedavg")
