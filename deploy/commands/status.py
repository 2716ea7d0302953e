"""`fedloom status`, `pause`, `resume`, `accept`: federation of this folder, clients of a state."""

import time
from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deploy.cli.options import LOCAL, STATE, AsJson

if TYPE_CHECKING:
    from client.owner.consent import ServerConsent
    from client.owner.status import ClientStatus, OwnerStatus, RunStatus
    from deploy.federation.status import ServerStatus


def federation_as_json(server: "ServerStatus") -> dict[str, Any]:
    """Return the status as a JSON object; events are those of metrics.jsonl."""
    import json

    from server.record.events import event_to_line

    events = {name: getattr(server, name) for name in ("start", "last", "waiting", "finish")}
    stored = {name: json.loads(event_to_line(event)) for name, event in events.items() if event}
    processes = [asdict(one) for one in server.processes]
    return {**asdict(server), **dict.fromkeys(events), **stored, "processes": processes}


def federation_as_lines(server: "ServerStatus") -> Iterator[str]:
    """Iterate over the lines of a server's status."""
    from common.text import printable
    from deploy.pages.terminal import round_line, waiting_line
    from deploy.pages.view import first_line

    start = server.start
    about = f" ({start.method} on {start.task})" if start else ""
    yield f"server {server.home}: run {server.run}{about}: {_state(server)}"
    if server.last:
        yield f"  {round_line(server.last, start).plain}"
    if server.disk:
        yield f"  {server.disk}"
    elif server.waiting and server.waiting.disk:
        yield f"  {waiting_line(server.waiting).plain}"
    elif server.waiting:
        until = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(server.waiting.until))
        yield f"  {waiting_line(server.waiting).plain}, until {until}"
    if server.absent:
        yield f"  registered and not connected: {', '.join(printable(name, 80) for name in server.absent)}"
    if server.finish and server.finish.reason:
        yield f"  {first_line(server.finish.reason, 400)}"
    if server.processes:
        names = ", ".join(f"{printable(one.name, 80)} (process {one.pid})" for one in server.processes)
        yield f"  {names}; fedloom stop ends them"


def _state(server: "ServerStatus") -> str:
    done = f"{server.last.round if server.last else 0} of {server.start.rounds} rounds" if server.start else "no round"
    is_full = bool(server.disk or (server.waiting and server.waiting.disk))
    text = {
        "starting": "starts; no client is enrolled yet",
        "waiting": f"waits for {'room' if is_full else 'clients'}; {done} done",
        "training": f"trains; {done} done",
        "completed": f"completed; {done} done",
        "failed": f"failed; {done} done",
        "stopped": f"not running; {done} done",
    }
    return text[server.state]


WATCH_SECONDS = 2.0
"""Time between two readings with --watch."""

KINDS = {"train": "updates", "assign": "scores", "names": "names", "enrol": "enrolments", "evaluate": "metrics"}
"""Noun of the replies of each kind of request."""

HOSTED = (
    "hosted by {hub}: its process reads these data, holds this ledger and adds up this client's updates;"
    " its operator is trusted, and nothing here protects from the operator"
)
"""Sentence about a client of a hub."""

StateFolder = Annotated[
    Path, typer.Option("--state-dir", help="Use this state folder; give the one that `fedloom join` was given.")
]


def status(
    state_dir: Annotated[
        Path | None,
        typer.Option(
            help="Use this state folder; give the one that `fedloom join` was given; default: ~/.fedloom/state."
        ),
    ] = None,
    home: Annotated[
        Path | None,
        typer.Option(help="Show only the server of this folder; default: also those of `serve` and `up` in .fedloom."),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show the status again every two seconds, until Ctrl-C.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Show the federation of this folder, and what a client on this machine was asked, sent and spent.

    Reads the events of the run at a server. At a client it reads the journal, the privacy ledgers and the pid file in the state
    folder, while `fedloom join` runs and after it ended. Nothing is changed and no connection is opened.
    """
    from deploy.cli.output import out, print_object, say

    while True:
        servers, owner = _read(state_dir, home)
        if watch and out.is_terminal and not json:
            out.clear()
        if json:
            federations = [federation_as_json(server) for server in servers]
            print_object({**(as_json(owner) if owner else {}), **({"federations": federations} if servers else {})})
        else:
            for line in (*chain(*map(federation_as_lines, servers)), *(as_lines(owner) if owner else ())):
                say(line)
        if not watch:
            return
        try:
            time.sleep(WATCH_SECONDS)
        except KeyboardInterrupt:
            return


def _read(state_dir: Path | None, home: Path | None) -> "tuple[list[ServerStatus], OwnerStatus | None]":
    """Return the servers of this folder and the clients of the state folder; one of them may be missing.

    Raises:
        ConfigError: There is neither.
    """
    from common.errors import ConfigError
    from common.files import expand_home
    from deploy.federation.runs import runs_folder
    from deploy.federation.status import read_servers

    servers = list(read_servers(LOCAL, runs_folder(), home))
    if home and not servers:
        raise ConfigError(f"no server has run in {home}; give the --home of `fedloom serve`")
    folder = state_dir or expand_home(STATE)
    wants_clients = not home and (state_dir or folder.is_dir() or not servers)
    if not wants_clients:
        return servers, None
    from client.owner.status import read_status

    return servers, read_status(state_folder(folder))


def state_folder(state_dir: Path) -> Path:
    """Return an existing state folder.

    Raises:
        ConfigError: There is no such folder.
    """
    from common.errors import ConfigError

    if not state_dir.is_dir():
        raise ConfigError(f"no state folder {state_dir}; give the --state-dir of `fedloom join`")
    return state_dir


def as_json(found: "OwnerStatus") -> dict[str, Any]:
    """Return the status as a JSON object."""
    from deploy.commands.budget import as_json as statement_as_json

    clients = [{**asdict(client), "runs": [asdict(run) for run in client.runs.values()]} for client in found.clients]
    ledgers = [statement_as_json(statement) for statement in found.ledgers]
    about: dict[str, Any] = {"state_dir": found.folder, "paused": found.paused, "disk": found.disk}
    about["consents"] = [
        {"client": client, "server": server, **consent.model_dump(mode="json")}
        for client, server, consent in found.consents
    ]
    return {**about, "clients": clients, "ledgers": ledgers, "broken_ledgers": list(found.broken)}


def as_lines(found: "OwnerStatus") -> Iterator[str]:
    """Iterate over the lines of a status."""
    from deploy.commands.budget import as_lines as statement_lines

    yield f"state folder {found.folder}{': paused by its owner' if found.paused else ''}"
    if found.disk:
        yield f"{found.disk}; its clients answer no request until there is room"
    if not found.clients:
        yield "no client has run here yet"
    for client in found.clients:
        yield from _client_lines(client)
    for name, server, consent in found.consents:
        yield f"{name}:"
        yield from _consent_lines(server, consent)
    for statement in found.ledgers:
        yield from statement_lines(statement)
    for error in found.broken:
        yield f"ledger cannot be used: {error}"


def _client_lines(client: "ClientStatus") -> Iterator[str]:
    from common.text import count, printable, size

    yield f"{client.client or 'client without a name'}: {_connection(client)}"
    if hub := client.client.rpartition("/")[0]:
        yield f"  {HOSTED.format(hub=printable(hub))}"
    for run in client.runs.values():
        yield f"  {_run(run)}"
    for covered, sizes in (("noised", client.noised_bytes), ("without noise", client.plaintext_bytes)):
        if amounts := [f"{size(n)} {KINDS.get(kind, 'other replies')}" for kind, n in sizes.items() if n]:
            yield f"  sent {covered}: {', '.join(amounts)}"
    yield f"  sent {count(client.numbers, 'number')} in plaintext; received {size(client.received_bytes)}"
    if client.unacknowledged:
        yield f"  {count(client.unacknowledged, 'reply').replace('replys', 'replies')} perhaps never arrived"
    last = (
        f"; the last at {_local(client.last_refusal_time)}: {printable(client.last_refusal)}" if client.refusals else ""
    )
    yield f"  refused {count(client.refusals, 'request')}{last}"
    if client.last_error:
        yield f"  last error at {_local(client.last_error_time)}: {printable(client.last_error)}"


def _consent_lines(server: str, consent: "ServerConsent") -> Iterator[str]:
    from common.contract import side_by_side
    from common.text import printable

    for newest in consent.agreed[-1:]:
        about = f"server {printable(server, 80)}, agreed at {_local(newest.time)} ({printable(newest.by, 80)})"
        yield f"  terms {newest.terms.short_hash} with {about}"
        if consent.offered is None:
            yield from newest.terms.lines()
        else:
            yield "  the server offers terms beyond them; fedloom accept agrees to these"
            yield from side_by_side(newest.terms, consent.offered)


def _connection(client: "ClientStatus") -> str:
    since = _local(client.connection_since)
    if client.process is None:
        ended = f"left {client.server} at {since}" if client.connection == "left" else "ended without leaving"
        return f"not running; {ended}"
    process = f"process {client.process.pid}"
    if client.connection == "connected" and client.connection_since >= client.process.started[:19]:
        return f"connected to {client.server} since {since}, {process}"
    return f"waiting for {client.server} since {since or _local(client.process.started)}, {process}"


def _run(run: "RunStatus") -> str:
    from client.owner.sentences import amount
    from common.contract import SHORT
    from common.text import printable

    name = f"run {printable(run.run, 80)} (task {run.task or 'unknown'}, method {run.method or 'unknown'})"
    of = f" of {run.rounds}" if run.rounds else ""
    left = f", {amount(run.epsilon_left)} left" if run.epsilon_left is not None else ""
    cost = f"; ε {amount(run.epsilon_spent)} spent{left}" if run.epsilon_left is not None else "; no noise"
    terms = f"; terms {run.contract[:SHORT]}" if run.contract else ""
    return f"{name}: trained in {len(run.trained)}{of} rounds, last request at {_local(run.last)}{cost}{terms}"


def _local(time_text: str) -> str:
    """Return a time of the journal in this machine's time zone."""
    from datetime import datetime

    try:
        return datetime.fromisoformat(time_text).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return "an unknown time"


def pause(state_dir: StateFolder = STATE) -> None:
    """Let the clients of a state folder refuse all work until `fedloom resume`.

    A paused client stays connected. It answers training and evaluation at once with "paused by its owner", so that the other
    clients do not wait for it. Clients that start later are paused too. Work under way is finished and sent.
    """
    from client.owner import control
    from deploy.cli.output import say

    folder = state_folder(state_dir)
    control.pause(folder)
    say(f"paused: {_running_names(folder) or 'no client runs now; the next one starts paused'}")


def resume(state_dir: StateFolder = STATE) -> None:
    """End the pause of the clients of a state folder.

    To continue a run on the server, use `--resume` of the training commands.
    """
    from client.owner import control
    from deploy.cli.output import say

    folder = state_folder(state_dir)
    if control.resume(folder):
        say(f"resumed: {_running_names(folder) or 'no client runs now'}")
    else:
        say("no client of this state folder was paused")


def _running_names(folder: Path) -> str:
    from client.owner.control import running_clients

    return ", ".join(one.client for one in running_clients(folder))


def accept(
    state_dir: StateFolder = STATE,
    client: Annotated[
        str, typer.Option(metavar="NAME", help="Agree for this client only; default: all clients here.")
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Agree without a question.")] = False,
) -> None:
    """Agree to terms that a server offers beyond the agreed ones.

    A client refuses a run that asks for more, or protects less, than its owner has agreed to. This command shows both terms
    side by side, then asks. A running client takes part at the server's next invitation, within a minute.
    """
    from client.owner.consent import BY_OWNER, consents_in
    from common.text import count
    from deploy.cli.output import say

    found = [(name, one, one.read()) for name, one in consents_in(state_folder(state_dir)) if client in ("", name)]
    offers = [(name, one, stored, stored.offered) for name, one, stored in found if stored.offered]
    texts: dict[tuple[str, ...], list[str]] = {}
    for name, one, stored, _ in offers:
        texts.setdefault(tuple(_consent_lines(one.server, stored)), []).append(name)
    for table, names in texts.items():
        for line in (names[0] if len(names) == 1 else count(len(names), "client"), *table):
            say(line)
    if not offers:
        say("no server offers terms beyond the agreed ones")
    elif yes or typer.confirm("Agree to the offered terms?", err=True):
        for name, one, _, offered in offers:
            one.agree(offered, BY_OWNER)
            say(f"agreed: terms {offered.short_hash} of {name}")
    else:
        say("nothing was agreed to")
