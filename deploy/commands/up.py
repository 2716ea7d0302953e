"""`up`, `serve`, `submit`: training with processes and sockets."""

from pathlib import Path
from typing import Annotated

import typer

from client.data.read import with_test
from client.policy import read_policy
from common.config.run import RunConfig
from common.text import count
from deploy import federation
from deploy.cli import options as o
from deploy.client_data import (
    MOST,
    USUAL,
    parts_of,
    read_catalogue,
    require_one_budget,
    share_out,
    shared_out,
    unit_names,
)
from deploy.commands.launch import LOCAL, finish, naming, speaking, superlink_of
from deploy.commands.resume import refusal
from deploy.control import Control
from deploy.federation import Order
from deploy.files import write_file
from deploy.partitioning import DEALT
from deploy.processes import Processes
from deploy.report.launch_record import Command, remember

POLICY = "policy.toml"
"""The policy that `up` was given, among the run's private files."""

SECONDS_A_KEY = 3.0
"""That a client waits for its own and each other key to be registered, one after the other in the worst case."""

SERVED = 86_400.0
"""Seconds that `serve` waits for its clients, whose owners have keys to send and commands to type."""

Clients = Annotated[
    int | None, typer.Option(min=1, help="Clients to wait for before the first round; default: 2, or the run's own.")
]


def up(
    method: o.Method = "",
    task: o.Task = "",
    data: o.Data = "demo",
    test: o.Test = "",
    columns: o.Columns = None,
    decimal: o.Decimal = "auto",
    dates: o.Dates = "auto",
    clients: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=f"Client processes to start; default: one a market (at most {MOST}), one a table of a folder of up to {MOST},"
            f" or {USUAL}.",
        ),
    ] = None,
    rounds: o.Rounds = None,
    seed: o.Seed = None,
    epsilon: o.Epsilon = None,
    delta: o.Delta = None,
    sets: o.Sets = None,
    catalogue: o.Catalogue = None,
    run_id: o.RunId = "",
    resume: o.Resume = "",
    policy: Annotated[Path | None, typer.Option(help="Policy file (TOML) of every client.")] = None,
    port: o.Port = 9092,
    control_port: o.ControlPort = 8000,
    json: o.Json = False,
) -> None:
    """Train with a whole federation on this machine: a server and separate client processes, over TLS.

    Makes certificates and keys, starts Flower's SuperLink and the clients, each with its own private part of the data, runs
    the training and ends with a result table and a report. Ctrl-C leaves nothing behind but the run's folder, from which
    --resume goes on, and the parts of your own data: a later run here finds what was spent of their privacy.
    """

    def resolved(fewest: int | None) -> RunConfig:
        noise = {"privacy__epsilon": epsilon, "privacy__delta": delta}
        return o.resolve(method, task, rounds, seed, run_id, resume, sets, **noise, federation__min_clients=fewest)

    config = resolved(clients)  # says at once what is mistyped
    home, dealt = (LOCAL / "up" / config.run_id).resolve(), DEALT.resolve()
    if resume and policy is None and (home / POLICY).exists():
        policy = home / POLICY  # the owner's terms outlive a pause
    terms = read_policy(policy)  # says at once what is wrong with it
    data, dialect = with_test(config.task, data, test), o.dialect_of(data, columns, decimal, dates)
    if resume:
        specs = shared_out(home)
        other = {"--data": data != "demo", "--test": test, "--clients": clients not in (None, len(specs))}
        if given := [name for name, told in other.items() if told]:
            raise refusal(resume, given[0], f"its own {count(len(specs), 'client')} and their data")
        require_one_budget(config, terms, specs[0].source, len(specs), dealt)
        naming(catalogue, config)
    else:
        parts = parts_of(config.task, data, read_catalogue(config.task, catalogue), clients, dialect)
        config = resolved(len(parts)).model_copy(update={"run_id": config.run_id})
        require_one_budget(config, terms, data, len(parts), dealt)
        specs, config = share_out(config.task, data, parts, home, dealt, dialect), speaking(config, data, parts, home)
        remember(o.runs_folder() / config.run_id, "up", data, len(parts), unit_names(config.task, parts))
    if policy and policy != home / POLICY:
        write_file(home / POLICY, policy.read_bytes(), mode=0o600, overwrite=True)

    superlink = superlink_of(home / "server", federation.ensure_certificates(home / "server"), port, control_port)
    o.console.print(
        f"run [bold]{config.run_id}[/]: {count(len(specs), 'client')}, server on {superlink.address}; logs in {home}",
        soft_wrap=True,
    )
    with Processes() as processes:
        ca, patience = home / "server" / "ca.pem", 30.0 + SECONDS_A_KEY * len(specs)
        keys = [federation.start_client(processes, spec, superlink.address, ca, policy, patience) for spec in specs]
        finish(federation.train(processes, superlink, Order(config, o.runs_folder(), keys), o.console), json)


def serve(
    method: o.Method = "",
    task: o.Task = "",
    clients: Clients = None,
    rounds: o.Rounds = None,
    seed: o.Seed = None,
    epsilon: o.Epsilon = None,
    delta: o.Delta = None,
    sets: o.Sets = None,
    catalogue: o.SharedCatalogue = None,
    run_id: o.RunId = "",
    resume: o.Resume = "",
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = "0.0.0.0",
    names: Annotated[
        list[str] | None,
        typer.Option("--name", help="Host name or address by which clients reach this machine; repeatable."),
    ] = None,
    home: Annotated[Path, typer.Option(help="Certificates, and nodes/*.pub: the keys that may join.")] = LOCAL
    / "server",
    port: o.Port = 9092,
    control_port: o.ControlPort = 8000,
    json: o.Json = False,
) -> None:
    """The server's half: wait for clients on other machines, train with them, write the result.

    Clients need ca.pem from --home (public; hand it out), and their public key in nodes/ there: see `fedloom keys`. They have a
    day to come before the first round, or as many seconds as --set federation.wait says.
    """
    config = naming(
        catalogue,
        o.resolve(
            method,
            task,
            rounds,
            seed,
            run_id,
            resume,
            sets,
            privacy__epsilon=epsilon,
            privacy__delta=delta,
            federation__min_clients=clients or (None if resume else 2),
            federation__wait=None if resume else SERVED,
        ),
    )
    home = home.resolve()
    order = Order(config, o.runs_folder(), nodes=home / "nodes")
    _noted("serve", config)
    keys = len(list((home / "nodes").glob("*.pub")))
    superlink = superlink_of(home, federation.ensure_certificates(home, names or []), port, control_port, host)
    o.console.print(
        f"run [bold]{config.run_id}[/]: serving on {host}:{port}, {count(keys, 'registered key')}, CA {home / 'ca.pem'};"
        f" waits for {count(config.federation.min_clients, 'client')}; who comes or refuses: {superlink.log}",
        soft_wrap=True,
    )
    with Processes() as processes:
        finish(federation.train(processes, superlink, order, o.console), json)


def submit(
    method: o.Method = "",
    task: o.Task = "",
    clients: Clients = None,
    rounds: o.Rounds = None,
    seed: o.Seed = None,
    epsilon: o.Epsilon = None,
    delta: o.Delta = None,
    sets: o.Sets = None,
    catalogue: o.SharedCatalogue = None,
    run_id: o.RunId = "",
    resume: o.Resume = "",
    control: Annotated[str, typer.Option(help="host:port of the SuperLink's Control API.")] = "127.0.0.1:8000",
    ca: Annotated[Path | None, typer.Option(help="The certificate authority's file.")] = None,
    nodes: Annotated[Path | None, typer.Option(help="Folder of public keys (*.pub) that may join.")] = None,
    work: Annotated[Path, typer.Option(help="Folder for this command's own files.")] = LOCAL / "submit",
    json: o.Json = False,
) -> None:
    """Start a run on a SuperLink that is already serving, and watch it to its end.

    The SuperLink must write runs to the same folder ($FEDLOOM_RUNS) as this command reads them from.
    """
    config = naming(
        catalogue,
        o.resolve(
            method,
            task,
            rounds,
            seed,
            run_id,
            resume,
            sets,
            privacy__epsilon=epsilon,
            privacy__delta=delta,
            federation__min_clients=clients or (None if resume else 2),
        ),
    )
    order = Order(config, o.runs_folder(), nodes=nodes)
    _noted("submit", config)
    line = Control(control, ca, work.resolve() / "control")
    with Processes() as processes:
        finish(federation.submit(processes, work.resolve(), line, order, o.console), json)


def _noted(command: Command, config: RunConfig) -> None:
    """Note how a run began whose clients are elsewhere."""
    if not config.resume:
        remember(o.runs_folder() / config.run_id, command, "", config.federation.min_clients)
