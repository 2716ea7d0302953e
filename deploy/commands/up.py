"""`fedloom up`: a whole federation on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from client.device import choose_device
from deploy.cli import options as o
from deploy.cli.signature import spread


@spread
def up(
    request: o.RunRequest,
    source: o.TrainingData,
    test: o.Test = "",
    clients: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Start so many client processes; default: one per market or table (at most 8), else 4, with helpers 5.",
        ),
    ] = None,
    catalogue: o.Catalogue = None,
    policy: Annotated[Path | None, typer.Option(help="Apply this policy file (TOML) at every client.")] = None,
    port: o.Port = 9092,
    control_port: o.ControlPort = 8000,
    superlink_state: o.SuperLinkState = "memory",
    device: o.Device = "cpu",
    alone: o.Alone = True,
    ui: o.Ui = False,
    examples: o.Examples = False,
    json: o.Json = False,
) -> None:
    """Train with a whole federation on this machine.

    Starts a server and separate client processes over TLS, with certificates and keys of their own. Each client reads its own
    private partition of the data. A result table and a report follow the last round.

    With helpers, the server learns masked sums only. A closed form starts two, and clients without --policy
    then allow statistics in sums; --helpers changes the number. Helpers started here have the same owner as the server, so they
    protect against nobody but outsiders; `fedloom helper` runs them elsewhere.

    A server process that ends is started again, and the run goes on from its checkpoint. After Ctrl-C, --resume continues the
    run from its folder. Partitions of your own data stay in .fedloom/dealt; later runs find their privacy ledgers there.
    """
    from contextlib import closing

    from deploy.federation.fork_server import ForkServer

    device = choose_device(device)
    with closing(ForkServer()) as fork_server:  # it imports while this process prepares the clients
        from functools import partial

        from common.text import count
        from deploy.cli.output import console, note
        from deploy.commands.ui import page_of
        from deploy.federation import start as federation
        from deploy.federation.local_clients import WARNING, prepare_clients
        from deploy.federation.processes import Processes
        from deploy.federation.runs import removed_unless_started, runs_folder
        from deploy.federation.watch import finish
        from deploy.keys.certificates import ensure_certificates
        from deploy.pages.tracker import tracked
        from deploy.superlink.superlink import SuperLinkSettings

        local = prepare_clients(request, source, test, clients, catalogue, policy)
        certificates = ensure_certificates(local.server)
        superlink = SuperLinkSettings(
            local.server, certificates, database=superlink_state == "sqlite", port=port, control_port=control_port
        )
        console.print(
            f"run [bold]{local.config.run_id}[/]: {count(len(local.specs), 'client')}, server on {superlink.address};"
            f" logs in {local.home}",
            soft_wrap=True,
        )
        if local.helpers:
            note(f"clients share sums only: masked by {count(len(local.helpers), 'helper')} on this machine; {WARNING}")
        with page_of(local.config.run_id, wanted=ui, json=json), tracked(local.config.run_id, request.track):
            with removed_unless_started(local.config.run_id), Processes(fork_server=fork_server) as processes:
                start_clients = partial(local.start, processes, superlink.address, device, fork_server.load)
                after = partial(local.measure, alone=alone, device=device)
                order = federation.Order(local.config, runs_folder(), after=after)
                result = federation.train(processes, superlink, order, console, start_clients)
            finish(result, json, source, examples=examples)
