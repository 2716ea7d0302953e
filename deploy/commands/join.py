"""`join` and `keys`: the client's half, and what the two halves need to trust each other."""

import logging
import math
import threading
from pathlib import Path
from typing import Annotated

import typer

from common.config.parse import parse
from common.errors import ConfigError, NothingYetError
from deploy.certificates import Certificates, make_authority, make_server_certificate
from deploy.cli import options as o
from deploy.commands.adapt import NEWCOMER, adapt_to, task_of
from deploy.commands.launch import LOCAL, STATE
from deploy.commands.policy_terms import keep_terms
from deploy.files import read_file, write_file
from deploy.keys import fingerprint, load_private_key, load_public_key, make_node_key, public_path
from deploy.partitioning import DEALT, require_unpartitioned

keys = typer.Typer(
    no_args_is_help=True,
    help="Certificates and node keys. A private key is made where it is used and never travels.",
)


def join(
    server: Annotated[str, typer.Option(metavar="HOST:PORT", help="The federation's server.")] = "",
    ca: Annotated[Path | None, typer.Option(help="The certificate authority's file, from the server's owner.")] = None,
    key: Annotated[Path | None, typer.Option(help="This node's private key (see `fedloom keys node`).")] = None,
    data: o.Data = "demo",
    test: o.Test = "",
    columns: o.Columns = None,
    decimal: o.Decimal = "auto",
    dates: o.Dates = "auto",
    task: Annotated[str, typer.Option(help="What the data are of; default: rules, or what RUN is of.")] = "",
    shard: Annotated[str, typer.Option(metavar="k/K", help="Use the k-th (from 0) of K parts of the data.")] = "",
    name: Annotated[
        str, typer.Option(help=f"Stable public name; default: from the key, or {NEWCOMER} with --adapt.")
    ] = "",
    state_dir: Annotated[Path, typer.Option(help="Where this client's private state is kept.")] = STATE,
    policy: Annotated[
        Path | None, typer.Option(help="What this client allows (TOML): methods, tasks, noise, counts, steps.")
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option("--method", help="Take part in runs of this method only; repeatable; default: all."),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(help="Let no more than this ε leave the data, over all runs; refuse runs without noise."),
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="δ that goes with --epsilon; default: the policy's, or 1e-5.")
    ] = None,
    ledgers: Annotated[
        Path | None, typer.Option(help="Folder of privacy ledgers, where they cannot lie beside the data.")
    ] = None,
    patience: Annotated[
        float, typer.Option(min=0, help="Seconds to keep asking while the server does not know this node's key.")
    ] = 600.0,
    insecure: Annotated[bool, typer.Option(help="Join without TLS; for experiments on one machine.")] = False,
    adapt: Annotated[
        str,
        typer.Option(
            metavar="RUN", help="Adapt the model of a finished run, by name or folder, to these data; needs no server."
        ),
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="With --adapt: print its metrics as JSON on stdout.")] = False,
) -> None:
    """The client's half: train on this machine's private data with a server elsewhere, until stopped.

    With --adapt nobody is asked: a newcomer takes the finished model, trains its own part of it and keeps it.

    The data stay here. The server can ask for training and metrics only, within --policy, --method and --epsilon, whichever
    is strictest. SIGTERM and Ctrl-C leave cleanly; when the server goes away the client waits and comes back.
    """
    if bool(server) == bool(adapt):
        raise ConfigError("say --server HOST:PORT to take part in training, or --adapt RUN to use what came of it")
    if json and not adapt:
        raise ConfigError("--json goes with --adapt: a client that trains with others has no result of its own")
    if server and not insecure and ca is None:
        raise ConfigError(
            "--ca is needed: the ca.pem of the server's owner (or --insecure for an experiment without TLS)"
        )
    import torch  # takes seconds; --help need not wait for it

    from client.app import app, open_session
    from client.data.read import read_partition, with_test
    from client.node.failures import Server
    from client.node.resident import leave_on_signals, run_resident
    from client.settings import ClientSettings

    torch.set_num_threads(1)
    private = load_private_key(key) if key else None
    name = name or (f"node-{fingerprint(private.public_key())[7:19].translate(PLAIN)}" if private else "")
    name = name or (NEWCOMER if adapt else "")
    kind = task_of(adapt, task) if adapt else parse({"task": task or "rules"}).task
    config = {"data": with_test(kind, data, test), "shard": shard, "name": name, "state-dir": str(state_dir.resolve())}
    o.dialect_of(data, columns, decimal, dates)  # says at once what is mistyped
    config |= {"columns": "\n".join(columns or []), "decimal": decimal, "dates": dates}
    config |= {"policy": str(policy.resolve())} if policy else {}
    config |= {"ledgers": str(ledgers.resolve())} if ledgers else {}
    settings = ClientSettings.from_node(config, name)
    if methods or epsilon is not None or delta is not None:
        config["policy"] = str(keep_terms(settings, methods or [], epsilon, delta))
        settings = ClientSettings.from_node(config, name)
    session = open_session(settings)  # says at once what is wrong with policy or state, and the next lines with data
    if server and (session.policy.require_noise or math.isfinite(session.policy.max_epsilon)):
        require_unpartitioned(DEALT, settings.data)
    try:
        for note in read_partition(
            kind, settings.data, settings.part, settings.data_seed, dialect=settings.dialect
        ).notes:
            o.note(f"{data}: {note}")
    except NothingYetError as error:  # who has rated nothing yet takes part as everybody does
        o.note(str(error))
    if adapt:
        adapt_to(adapt, settings, json=json)
        return
    line = Server(server, read_file(ca) if ca else b"", private)
    stop = threading.Event()
    leave_on_signals(stop)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", force=True)
    logging.getLogger("flwr").setLevel(logging.WARNING)
    run_resident(app, line, stop=stop, node_config=config, patience=patience)


PLAIN = str.maketrans("+/=", "___")


@keys.command("server")
def keys_server(
    home: Annotated[Path, typer.Option(help="The server's folder.")] = LOCAL / "server",
    names: Annotated[
        list[str] | None,
        typer.Option("--name", help="Host name or address by which clients reach the server; repeatable."),
    ] = None,
    renew: Annotated[bool, typer.Option(help="Make a new server certificate under the same authority.")] = False,
    json: o.AsJson = False,
) -> None:
    """Make the certificate authority (once) and the server's certificate. Hand ca.pem to every client."""
    there = Certificates(home)
    if not there.ca.exists():
        make_authority(home)
    if not renew and there.server.exists():
        raise ConfigError(f"{there.server} exists already: say --renew for a new one under the same authority")
    files = make_server_certificate(home, names or [], overwrite=renew)
    o.console.print(f"server certificate {files.server}; hand {files.ca} to every client")
    if json:
        o.print_object({"certificate": str(files.server), "ca": str(files.ca)})


@keys.command("node")
def keys_node(
    path: Annotated[Path, typer.Argument(help="Where the private key goes, e.g. node.key.")], json: o.AsJson = False
) -> None:
    """Make this client's key, on the client's machine. Send PATH.pub (public) to the server's owner."""
    if path.exists():
        raise ConfigError(f"{path} exists already: this client is known by it; for another client, name another PATH")
    public = make_node_key(path)
    o.console.print(
        f"private key {path} stays here; send {public_path(path)} to the server's owner\n{fingerprint(public)}"
    )
    if json:
        o.print_object({"private": str(path), "public": str(public_path(path)), "fingerprint": fingerprint(public)})


@keys.command("register")
def keys_register(
    public_keys: Annotated[list[Path], typer.Argument(help="Clients' public keys (*.pub).")],
    home: Annotated[Path, typer.Option(help="The server's folder.")] = LOCAL / "server",
    json: o.AsJson = False,
) -> None:
    """Admit clients: copy their public keys to where `fedloom serve` looks for them."""
    registered = []
    for path in public_keys:
        name = fingerprint(load_public_key(path))
        target = home / "nodes" / f"{name[7:].translate(PLAIN)}.pub"
        write_file(target, path.read_bytes(), overwrite=True)
        o.console.print(f"registered {name} from {path}")
        registered.append({"fingerprint": name, "file": str(target)})
    if json:
        o.print_object(registered)
