"""`fedloom tasks` and `methods`: the installed tasks, methods and planners."""

from collections.abc import Iterator
from typing import Any

from common.text import count
from deploy.cli import options as o


def tasks(json: o.AsJson = False) -> None:
    """List the installed tasks.

    Shows name, summary, package and capabilities of each. A task whose package is broken is listed with the error.
    """
    from common.tasks.registry import TASKS
    from deploy.cli.output import print_entries

    print_entries({name: TASKS.origin(name) for name in TASKS}, describe, json=json)


def describe(name: str) -> dict[str, Any]:
    """Return a task's summary, defaults and capabilities.

    Raises:
        ConfigError: The package of the task cannot be imported.
    """
    from common.methods.registry import FIRST_METHOD
    from common.tasks.registry import TASKS

    spec = TASKS[name]
    return {
        "summary": spec.summary,
        "defaults": {"method": FIRST_METHOD, **spec.defaults},
        "capabilities": [*_of_spec(spec), *_of_client(name), *_of_deploy(name)],
    }


def _of_spec(spec: Any) -> Iterator[str]:
    yield f"objective {spec.objective.metric}"
    if spec.record_dp:
        yield f"DP-SGD with model={' or '.join(sorted(spec.record_dp))}"
    if spec.closed_form:
        yield "closed form"
    if spec.head:
        yield "private head"
    if spec.client_only:
        yield "parameters that never leave a client"


def _of_client(name: str) -> Iterator[str]:
    from client.tasks.registry import CLIENT_TASKS

    task = CLIENT_TASKS[name]
    yield f"unit of data: {task.unit[0]}"
    if task.test_file:
        yield "test file"


def _of_deploy(name: str) -> Iterator[str]:
    from deploy.tasks.registry import DEPLOY_TASKS

    if name not in DEPLOY_TASKS:
        return
    task = DEPLOY_TASKS[name]
    if task.answer:
        yield " ".join(["recommend", *(f"--{option.name}" for option in task.query)])
    yield from (f"fedloom {ref.name}" for ref in task.commands)


def methods(json: o.AsJson = False) -> None:
    """List the installed methods, planners and networks of packages.

    Shows name, summary, package and capabilities of each. A method whose package is broken is listed with the error.
    """
    from common.methods.planners import PLANNERS, method_names
    from common.methods.registry import METHODS
    from common.tasks.networks import NETWORKS
    from deploy.cli.output import print_entries

    origins = {name: (PLANNERS if name in PLANNERS else METHODS).origin(name) for name in method_names()}
    origins |= {f"--model {name}": NETWORKS.origin(name) for name in NETWORKS}
    print_entries(origins, describe_method, json=json)


def describe_method(name: str) -> dict[str, Any]:
    """Return a method's or planner's summary and its capabilities under default options.

    Raises:
        ConfigError: The package of the method cannot be imported.
    """
    from common.methods.planners import PLANNERS
    from common.methods.registry import METHODS
    from common.tasks.networks import NETWORKS
    from common.tasks.registry import TASKS

    if (model := name.removeprefix("--model ")) != name:
        return {"summary": NETWORKS[model].summary, "capabilities": [f"network of task {NETWORKS[model].task}"]}
    papers = [f"--task {task} --model paper" for task in TASKS if TASKS[task].paper.get("method") == name]
    if name in PLANNERS:
        planner = PLANNERS[name]
        return {"summary": planner.summary, "capabilities": [*_of_planner(planner.options()), *papers]}
    spec = METHODS[name]
    return {
        "summary": spec.summary,
        "paper": spec.paper,
        "capabilities": [*_of_method(spec.options().capabilities()), *papers],
    }


def _of_planner(options: Any) -> Iterator[str]:
    yield f"planner of a privacy budget, trains by {options.inner}" if options.needs_noise else "planner without noise"
    if options.by_rewards:
        yield "needs metrics of clients"


def _of_method(capabilities: Any) -> Iterator[str]:
    if capabilities.tasks:
        yield f"tasks {', '.join(sorted(capabilities.tasks))}"
    if not capabilities.record_dp:
        yield "DP-SGD"
    if capabilities.private_layers != "none":
        yield {"head": "private head", "all": "private model"}[capabilities.private_layers]
    if capabilities.own_model != "none":
        yield f"personalized model ({capabilities.own_model})"
    if capabilities.row_wise:
        yield "row-sparse replies"
    if capabilities.sum_only:
        yield "weighted sums only"
    if capabilities.clusters:
        yield "secure sums of clusters"
    if capabilities.extra_releases:
        yield f"{count(capabilities.extra_releases, 'further release')} a round"
