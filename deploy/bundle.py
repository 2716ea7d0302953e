"""Flower app folder of a run: our packages, and a pyproject that declares the run's options.

`flwr run` accepts declared options only, and bundles the whole folder. Each run therefore has its own folder, built from
the installed packages. Clients receive none of it: they run their own code.
"""

import shutil
from importlib.metadata import version
from pathlib import Path

import tomli_w

import client
import common
import server
from common.config.flatten import flatten
from common.config.run import RunConfig

PACKAGES = (common, server, client)


def make_app(folder: Path, config: RunConfig) -> Path:
    """Write the app of one run into `folder`, replacing its content; return the folder."""
    shutil.rmtree(folder, ignore_errors=True)
    for package in PACKAGES:
        [source] = package.__path__
        shutil.copytree(source, folder / package.__name__, ignore=shutil.ignore_patterns("__pycache__"))
    for path in folder.rglob("*"):  # copies have the modes of the installed packages
        path.chmod(0o700 if path.is_dir() else 0o600)
    (folder / "pyproject.toml").write_text(tomli_w.dumps(_pyproject(config)))
    return folder


def _pyproject(config: RunConfig) -> dict[str, object]:
    app = {
        "publisher": "fedloom",
        "fab-include": ["**/*.py", "**/*.json"],
        "components": {"serverapp": "server.app:app", "clientapp": "client.app:app"},
        "config": flatten(config),
    }
    project: dict[str, object] = {"name": "fedloom", "version": version("fedloom"), "license": "Apache-2.0"}
    project |= {"description": f"fedloom run {config.run_id}", "dependencies": []}
    return {"project": project, "tool": {"flwr": {"app": app}}}
