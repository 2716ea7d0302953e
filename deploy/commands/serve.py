"""`fedloom serve` and `submit`: the server of a federation, and a run on a serving SuperLink."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deploy.cli import options as o
from deploy.cli.signature import spread

if TYPE_CHECKING:
    from common.config.run import RunConfig
    from deploy.superlink.superlink import SuperLinkSettings

WAIT_SECONDS = 86_400.0
"""Seconds that `serve` waits for its clients; their owners exchange keys first."""


def _print_limits(asked: bool) -> None:
    """Print the limits of the door if they are asked for."""
    if not asked:
        return
    from common.door.frames import DoorLimits

    for name, value, about in DoorLimits().rows():
        typer.echo(f"{name:<14}{value:<10}{about}")
    raise typer.Exit


@spread
def serve(
    request: o.RunRequest,
    clients: o.Clients = None,
    catalogue: o.SharedCatalogue = None,
    host: Annotated[str, typer.Option(help="Listen on this address; 0.0.0.0 for all.")] = "0.0.0.0",
    names: Annotated[
        list[str] | None,
        typer.Option("--name", help="Let clients reach this machine by this host name or address; repeatable."),
    ] = None,
    home: Annotated[
        Path, typer.Option(help="Use the certificates of this folder, and its nodes/*.pub: keys of clients.")
    ] = o.LOCAL / "server",
    port: o.Port = 9092,
    control_port: o.ControlPort = 8000,
    superlink_state: o.SuperLinkState = "memory",
    stock: Annotated[
        bool,
        typer.Option("--stock", help="Let Flower's own nodes (flower-supernode) join at --control-port, over HTTP."),
    ] = False,
    resume_if_there: Annotated[
        bool, typer.Option("--resume-if-there", help="Continue the run of --run-id if it exists and is not finished.")
    ] = False,
    limits: Annotated[
        bool,
        typer.Option("--limits", callback=_print_limits, is_eager=True, help="Print the limits for clients and exit."),
    ] = False,
    ui: o.Ui = False,
    json: o.Json = False,
) -> None:
    """Serve a run to clients on other machines.

    Waits for the clients, trains with them and writes the result. `fedloom invite` writes the file by which clients join, and
    `fedloom nodes add` admits them, also while the run waits. Clients have a day to join before the first round;
    --set federation.wait=SECONDS changes that. A server process that ends is started again, and the run goes on from its
    checkpoint.
    """
    from contextlib import closing
    from dataclasses import replace

    from deploy.federation.fork_server import ForkServer

    with closing(ForkServer()) as fork_server:  # it imports while this process reads the run
        from deploy.cli.output import console, note
        from deploy.commands.ui import page_of
        from deploy.federation import start as federation
        from deploy.federation.processes import Processes
        from deploy.federation.request import owners_must_allow, resolve, with_catalogue, without_effect
        from deploy.federation.runs import remember, removed_unless_started, runs_folder
        from deploy.federation.status import store_order
        from deploy.federation.watch import finish
        from deploy.keys.certificates import ensure_certificates
        from deploy.pages.tracker import tracked
        from deploy.superlink.superlink import SuperLinkSettings

        if resume_if_there:
            restarted = start_or_continue(request, home)
            if restarted is None:
                return
            request = restarted
        fallback = {"federation.min-clients": 2, "federation.wait": WAIT_SECONDS}
        resolved = resolve(request, {"federation.min-clients": clients}, fallback)
        config, home = with_catalogue(resolved, catalogue), home.resolve()
        order = federation.Order(config, runs_folder(), nodes=home / "nodes")
        keys, stored = ensure_certificates(home, names or []), superlink_state == "sqlite"
        superlink = SuperLinkSettings(home, keys, database=stored, host=host, port=port, control_port=control_port)
        superlink = replace(superlink, stock=stock, control_host=host if stock else superlink.control_host)
        if not config.resume:
            remember(runs_folder() / config.run_id, "serve", "", config.federation.min_clients)
        store_order(home, config, port)
        _announce(config, superlink, home)
        for line in (*owners_must_allow(config), *without_effect(request, config)):
            note(line)
        run = config.run_id
        page, record = page_of(run, wanted=ui, json=json), tracked(run, request.track)
        with page, removed_unless_started(run), record, Processes(fork_server=fork_server) as processes:
            finish(federation.train(processes, superlink, order, console), json, examples=False)


def start_or_continue(request: o.RunRequest, home: Path) -> o.RunRequest | None:
    """Return the request with the run to continue if it exists; None if that run is finished.

    Raises:
        ConfigError: No run is named, or the request continues one by --resume.
    """
    from dataclasses import replace

    from common.errors import ConfigError
    from deploy.cli.output import note
    from deploy.federation.runs import runs_folder
    from deploy.federation.start import erase_apps
    from server.record.events import ENDED_EARLY
    from server.record.folder import RunDirectory

    if not request.run_id or request.resume:
        raise ConfigError("--resume-if-there needs --run-id NAME, and no --resume")
    folder = RunDirectory(runs_folder(), request.run_id)
    if not (folder.path / "config.toml").exists():
        return request
    result = folder.result()
    rounds = request.rounds or int(folder.config()["rounds"])
    if result and (result.rounds_done >= rounds or result.reason.startswith(ENDED_EARLY)):
        note(f"run '{request.run_id}' is finished; choose another --run-id for a new run")
        erase_apps(home)
        return None
    return replace(request, run_id="", resume=request.run_id, config=None)


def _announce(config: "RunConfig", superlink: "SuperLinkSettings", home: Path) -> None:
    """Print where the run is served, and for whom it waits."""
    from common.text import count
    from deploy.cli.output import console

    keys = count(len(list((home / "nodes").glob("*.pub"))), "registered key")
    console.print(
        f"run [bold]{config.run_id}[/]: serving on {superlink.host}:{superlink.port}, {keys}, CA {home / 'ca.pem'}; waits for"
        f" {count(config.clients_to_begin, 'client')}; admissions and refusals: {superlink.log}",
        soft_wrap=True,
    )
    if superlink.stock:
        where = f"{superlink.control_host}:{superlink.control_port}"
        limit = "a stranger may send 257 MB, or FEDLOOM_MOST_UPLOAD, before a key is checked, any number of times"
        console.print(f"Flower's own nodes join at {where}: {limit}", style="yellow", soft_wrap=True)


@spread
def submit(
    request: o.RunRequest,
    clients: o.Clients = None,
    catalogue: o.SharedCatalogue = None,
    control: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Use the SuperLink with this Control API.")
    ] = "127.0.0.1:8000",
    ca: Annotated[Path | None, typer.Option(help="Trust this certificate authority (ca.pem).")] = None,
    nodes: Annotated[Path | None, typer.Option(help="Admit the public keys (*.pub) of this folder.")] = None,
    work: Annotated[Path, typer.Option(help="Store this command's own files here.")] = o.LOCAL / "submit",
    json: o.Json = False,
) -> None:
    """Start a run on a SuperLink that already serves.

    Watches the run to its end. The SuperLink must write runs to the folder ($FEDLOOM_RUNS) from which this command reads them.
    """
    from deploy.cli.output import console, note
    from deploy.federation import start as federation
    from deploy.federation.processes import Processes
    from deploy.federation.request import owners_must_allow, resolve, with_catalogue, without_effect
    from deploy.federation.runs import remember, removed_unless_started, runs_folder
    from deploy.federation.watch import finish
    from deploy.pages.tracker import tracked
    from deploy.superlink.control import Control
    from server.record.process import COMMAND, FOLDER, record_process

    resolved = resolve(request, {"federation.min-clients": clients}, {"federation.min-clients": 2})
    config = with_catalogue(resolved, catalogue)
    order = federation.Order(config, runs_folder(), nodes=nodes)
    superlink = Control(control, ca)
    if not config.resume:
        remember(runs_folder() / config.run_id, "submit", "", config.federation.min_clients)
    record_process(work.resolve() / FOLDER, COMMAND, run=config.run_id)
    for line in (*owners_must_allow(config), *without_effect(request, config)):
        note(line)
    record = tracked(config.run_id, request.track)
    with removed_unless_started(config.run_id), record, Processes() as processes:
        finish(federation.submit(processes, work.resolve(), superlink, order, console), json)
