"""The Flower app folder that a run is started from: our packages, and a pyproject that declares the run's options.

`flwr run` accepts only options that the app's pyproject declares, and builds a bundle of the whole folder; so each run gets
a folder of its own, made from what is installed here. Nothing of it reaches clients: they run their own code.
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
    """Write the app for one run into `folder`, replacing what is there; returns the folder."""
    shutil.rmtree(folder, ignore_errors=True)
    for package in PACKAGES:
        [source] = package.__path__
        shutil.copytree(source, folder / package.__name__, ignore=shutil.ignore_patterns("__pycache__"))
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
