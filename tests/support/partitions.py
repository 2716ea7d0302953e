"""Ratings of eight people, partitioned as `fedloom up` does, and runs that spend their privacy budget."""

import csv
from collections.abc import Sequence
from pathlib import Path

from click.testing import Result
from typer.testing import CliRunner

from client.app import open_session
from client.checks import check_client
from client.data.dataset import AnyDataset
from client.owner.policy import Policy
from client.session import Session
from client.settings import ClientSettings
from client.tasks.ratings.data.reader import read_raters
from common.config.parse import parse, to_json
from common.config.run import RunConfig
from common.models import parameters
from common.options import Scalar
from common.tasks.registry import read_vocabulary
from common.wire.messages import EnrolRequest, TrainRequest
from deploy.cli.app import app
from deploy.data.budgets import require_one_budget
from deploy.data.partitions import PARTITIONS
from deploy.data.sources import partition_source, read_catalogue, write_clients
from deploy.federation.start import ClientSpec
from tests.support.build import task_model

EPSILON = 10.0
EXHAUSTED = "privacy budget of this client's data is exhausted"


def rows(people: Sequence[str]) -> str:
    """Return six ratings of each person as lines of a table."""
    return "".join(f"{name},i{k},{1 + (k + len(name)) % 5}\n" for name in people for k in range(6))


def write_ratings(path: Path, people: Sequence[str]) -> None:
    path.write_text("user,item,rating\n" + rows(people))


def write_workplace() -> None:
    """Write `my.csv`, its vocabulary `items.json` and a `policy.toml` that limits ε."""
    write_ratings(Path("my.csv"), [f"u{k}" for k in range(8)])
    Path("policy.toml").write_text(f"max-epsilon = {EPSILON}\n")
    Path("items.json").write_text(read_raters(Path("my.csv")).vocabulary.to_json())


def write_two_tables() -> Path:
    """Write the ratings of `my.csv` as two tables of a folder."""
    folder = Path("tables")
    folder.mkdir()
    write_ratings(folder / "a.csv", ["u0", "u1", "u2", "u3"])
    write_ratings(folder / "b.csv", ["u4", "u5", "u6", "u7"])
    return folder


def partition_for(run: str, data: str = "my.csv", clients: int = 2) -> list[ClientSpec]:
    """Partition data as `fedloom up` does before it starts a process."""
    names = read_catalogue("ratings", Path("items.json"))
    parts = partition_source("ratings", data, names, clients)
    require_one_budget(noisy(run), Policy(), data, clients, PARTITIONS.resolve())
    return write_clients("ratings", data, parts, Path("up", run).resolve(), PARTITIONS.resolve())


def noisy(run: str) -> RunConfig:
    noise: dict[str, Scalar] = {"privacy.unit": "client", "privacy.epsilon": EPSILON, "privacy.mechanism": "privunit"}
    return parse({"method": "fedavg", "task": "ratings", "run-id": run, **noise})


def opened(spec: ClientSpec) -> Session:
    """Return the client as its own process opens it."""
    open_session.cache_clear()
    check_client.cache_clear()
    return open_session(
        ClientSettings(data=spec.data, name=spec.name, state_dir=spec.state or spec.home, policy=Path("policy.toml"))
    )


def spend(spec: ClientSpec, run: str) -> float:
    """Train one round at the cost of the whole budget that the client offers; return that budget."""
    session, config, catalogue = opened(spec), noisy(run), Path("items.json").read_text()
    enrolled = session.enrol(EnrolRequest(run, to_json(config), catalogue))
    model = parameters(task_model(config, read_vocabulary("ratings", catalogue)))
    session.train(TrainRequest(1, enrolled.enrolment, model, cost=enrolled.budget, clip=1.0))
    return enrolled.budget


def invoke(command: str) -> Result:
    """Call a command that ends before it starts a process."""
    open_session.cache_clear()
    check_client.cache_clear()
    return CliRunner().invoke(app, command.split())


def people_of(spec: ClientSpec) -> set[str]:
    with Path(spec.data).open() as file:
        return {row["user"] for row in csv.DictReader(file)}


def names_of(parts: Sequence[AnyDataset]) -> list[set[str]]:
    return [{rater.name for rater in part.units} for part in parts]
