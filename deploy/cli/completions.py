"""Values that a shell offers for an option; each is computed when the tab key is pressed."""


def list_methods() -> list[str]:
    """Return the names of methods and planners."""
    from common.methods.registry import method_names

    return list(method_names())


def list_tasks() -> list[str]:
    """Return the names of tasks."""
    from common.tasks.registry import TASKS

    return list(TASKS)


def list_runs() -> list[str]:
    """Return the names of the stored runs, newest first."""
    from deploy.commands.runs import runs_folder

    configs = runs_folder().glob("*/config.toml")
    return [path.parent.name for path in sorted(configs, key=lambda path: path.stat().st_mtime, reverse=True)]


def list_keys() -> list[str]:
    """Return the keys of all options."""
    from common.config.parse import option_keys

    return list(option_keys())


def list_assignments() -> list[str]:
    """Return the beginnings of assignments: every key with `=`."""
    return [f"{key}=" for key in list_keys()]
