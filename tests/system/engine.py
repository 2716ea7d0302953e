"""Docker engine of this machine, and Compose projects of `deploy/` that stand for machines."""

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def docker(*arguments: str) -> str:
    """Return the output of a docker command."""
    done = subprocess.run(["docker", *arguments], timeout=120, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def require_engine() -> None:
    """Skip the test if no engine or no compose plugin answers."""
    if shutil.which("docker") is None:
        pytest.skip("needs Docker; the `docker` command is not installed")
    for command in (["docker", "info"], ["docker", "compose", "version"]):
        done = subprocess.run(command, timeout=60, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"needs Docker; `{' '.join(command)}` fails: {done.stderr.strip()}")


@dataclass
class Machine:
    """Compose project that stands for a machine.

    Args:
        service: Service of the file: `server` or `client`.
        name: Name of the project.
        folder: Its own files.
        variables: Variables of the Compose file.
    """

    service: str
    name: str
    folder: Path
    variables: dict[str, str] = field(default_factory=dict)

    def __call__(self, *arguments: str, check: bool = True) -> str:
        """Run `docker compose` and return its output."""
        files = [ROOT / "deploy" / f"compose.{self.service}.yml", *self.folder.glob("override.yml")]
        command = ["docker", "compose", "-p", f"fedloom-apart-{self.name}"]
        command += [word for file in files for word in ("-f", str(file))]
        environment = {**os.environ, "CONFIG": str(self.folder), **self.variables}
        done = subprocess.run(
            [*command, *arguments], env=environment, timeout=1200, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0 or not check, done.stderr
        return done.stdout + done.stderr

    def fedloom(self, *words: str) -> str:
        """Run a command inside the running container."""
        return self("exec", "-T", self.service, "fedloom", *words)

    def log(self) -> str:
        return self("logs", "--no-log-prefix", self.service)

    def state(self, form: str) -> str:
        """Return a property of the container."""
        return docker("inspect", "--format", form, self.container())

    def container(self) -> str:
        """Return the container, which may have ended."""
        return self("ps", "--all", "--quiet", self.service).strip()

    def kill(self) -> None:
        """Kill the main process from outside, as a crash does; the restart policy applies."""
        process = self.state("{{.State.Pid}}")
        docker("run", "--rm", "--pid", "host", "--user", "root", "fedloom", "sh", "-c", f"kill -9 {process}")
