"""Form of the answers of hubs: one sum for their clients, or a reply of each."""

from common.config.run import RunConfig


def reason_for_replies(config: RunConfig) -> str:
    """Return why a run needs a reply of each client of a hub; empty if hubs may add them up."""
    federation, task = config.federation, config.task_options
    if federation.answer != "sums":
        return f"federation.answer is {federation.answer}"
    if federation.robust != "none":
        return f"federation.robust={federation.robust} compares single updates"
    if not config.capabilities.sum_only:
        return f"{config.method} uses single updates"
    return "updates name the rows that they change" if task.named_rows or task.gathers_rows else ""
