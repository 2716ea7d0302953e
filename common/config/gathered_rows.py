"""Runs whose local steps gather rows of tables: form of updates, and refused combinations."""

from typing import TYPE_CHECKING

from common.tasks.vocabulary import Vocabulary

if TYPE_CHECKING:
    from common.config.run import RunConfig


def names_rows(config: "RunConfig") -> bool:
    """Return True if updates hold the gathered rows with their ids; noise and masks cover all rows."""
    return bool(config.task_options.gathers_rows) and _is_plain(config)


def check_rows(config: "RunConfig") -> None:
    """Accept the combination of options for runs whose clients name or gather rows.

    Raises:
        ValueError: The combination is not supported.
    """
    task = config.task_options
    has_noise = config.privacy.unit != "none"
    config.federation.check_updates(names_rows=task.named_rows is not None, has_noise=has_noise)
    if task.gathers_rows and (obstacle := _find_obstacle(config)):
        raise ValueError(f"tasks.{config.task}.{task.gathers_rows} does not apply: {obstacle}")


def resolve_rows(config: "RunConfig", vocabulary: Vocabulary) -> "RunConfig":
    """Return the configuration of a run in which the task knows whether clients gather rows.

    They gather none where noise or masks would restore whole tables, and where `check_rows` refuses it.
    """
    is_possible = _is_plain(config) and not _find_obstacle(config)
    options = config.task_options.resolve_rows(vocabulary, is_possible=is_possible)
    return config if options is config.task_options else config.model_copy(update={"task_options": options})


def _is_plain(config: "RunConfig") -> bool:
    return config.privacy.unit == "none" and config.privacy.resolved_trust != "helpers"


def _find_obstacle(config: "RunConfig") -> str:
    """Return the reason why the local steps of a run cannot gather rows; empty if they can."""
    options, capabilities, federation = config.method_options, config.capabilities, config.federation
    if capabilities.moves_all_rows:
        return f"{options.name} moves all rows of a table in each step"
    if capabilities.private_layers == "all" or capabilities.own_model != "none":
        return f"{options.name} has a whole model on each client"
    if not capabilities.sum_only:
        return f"{options.name} needs whole tables of single clients"
    if options.optimizer == "adam" and options.moments == "persist":
        return "Adam's persistent moments move rows that a round does not gather; set moments=reset"
    if federation.robust != "none":
        return f"federation.robust={federation.robust} would take rows that were not gathered for zeros"
    if federation.updates == "dense":
        return "federation.updates=dense sends whole tables, whose zeros name the same rows"
    if config.privacy.unit == "record":
        return "privacy.unit=record draws noise for all rows in each step"
    return ""
