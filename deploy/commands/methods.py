"""`fedloom methods`: the installed methods and planners."""

from collections.abc import Iterator
from typing import Any

from common.text import count
from deploy.cli import options as o


def methods(json: o.AsJson = False) -> None:
    """List the installed methods and planners.

    Shows name, summary, package and capabilities of each. A method whose package is broken is listed with the error.
    """
    from common.methods.planners import PLANNERS
    from common.methods.registry import METHODS, method_names
    from deploy.cli.output import print_entries

    origins = {name: (PLANNERS if name in PLANNERS else METHODS).origin(name) for name in method_names()}
    print_entries(origins, describe, json=json)


def describe(name: str) -> dict[str, Any]:
    """Return a method's or planner's summary and its capabilities under default options.

    Raises:
        ConfigError: The package of the method cannot be imported.
    """
    from common.methods.planners import PLANNERS
    from common.methods.registry import METHODS

    if name in PLANNERS:
        planner = PLANNERS[name]
        return {"summary": planner.summary, "capabilities": list(_of_planner(planner.options()))}
    spec = METHODS[name]
    return {
        "summary": spec.summary,
        "paper": spec.paper,
        "capabilities": list(_of_method(spec.options().capabilities())),
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
