"""`fedloom invite`, `join --invite` and `nodes` with a real SuperLink: admission, names, revocation, modes of files."""

import shlex
import signal
import stat
from pathlib import Path

import pytest

from tests.system.desk import Command, Desk, until

pytestmark = pytest.mark.system

HOME = ("--home", "home")


def test_clients_join_by_invitation_and_a_revoked_key_stays_refused_after_a_restart(desk: Desk) -> None:
    desk.finish("keys", "server", *HOME)
    served = serve(desk, "one", rounds=2)
    served.wait_for("0 registered keys")
    address = f"127.0.0.1:{desk.port}"
    desk.finish("invite", *HOME, "--server", address, "--out", "i.fedloom")
    desk.finish("invite", *HOME, "--server", address, "--out", "shop-1.fedloom", "--client", "shop-1")

    eve = join(desk, "eve", shard=2)
    admit(desk, eve)
    eve.wait_for("connected to")
    desk.finish("nodes", "revoke", "eve", *HOME)
    served.wait_for("removed eve: its key was revoked")
    eve.wait_for("does not admit this node's key")

    ann = join(desk, "", shard=0, state="ann", invitation="shop-1")  # it admits the client, and names it
    bob = join(desk, "bob", shard=1)
    admit(desk, bob)
    ann.wait_for("connected to")
    bob.wait_for("connected to")
    assert served.end() == 0, served.error()
    assert sorted(served.result()["clients"]) == ["bob", "shop-1"]

    again = serve(desk, "two", "--set", "federation.compare-alone=true", rounds=1)
    assert again.end() == 0, again.error()
    assert sorted(again.result()["clients"]) == ["bob", "shop-1"]
    assert served.result()["verdict"]["alone"] is None
    assert "better than alone and than 'relation frequency' (HR@20 shown " in again.result()["verdict"]["text"]
    ann.wait_for("sums of comparisons with baselines, without noise")
    assert eve.error().count("connected to") == 1
    assert [command.end(signal.SIGTERM) for command in (ann, bob, eve)] == [0, 0, 0]
    require_closed(desk.folder)


def serve(desk: Desk, run: str, *words: str, rounds: int) -> Command:
    ports = ("--port", str(desk.port), "--control-port", str(desk.control_port), "--host", "127.0.0.1")
    options = ("--clients", "2", "--method", "fedrule", "--rounds", str(rounds), "--run-id", run, "--json")
    return desk.start("serve", *options, *ports, *HOME, "--set", "federation.min-replies=2", *words, folder=desk.folder)


def join(desk: Desk, name: str, shard: int, state: str = "", invitation: str = "i") -> Command:
    options = ("--shard", f"{shard}/3", "--state-dir", state or name, *(("--name", name) if name else ()))
    return desk.start("join", "--invite", f"{invitation}.fedloom", *options, "--patience", "600", folder=desk.folder)


def admit(desk: Desk, client: Command) -> None:
    """Run the command that a client prints for the server's owner."""
    until(lambda: "fedloom nodes add" in client.error(), client.error)
    [line] = [line for line in client.error().splitlines() if "fedloom nodes add" in line]
    desk.finish(*shlex.split(line)[1:], *HOME)


def require_closed(folder: Path) -> None:
    """Check that other users can neither read nor list what the commands wrote."""
    written = [path for name in ("home", "runs", "ann", "bob") for path in (folder / name).rglob("*")]
    assert any(path.name == "superlink.log" for path in written)
    assert any(path.name == "model.safetensors" for path in written)
    opened = {path: oct(path.stat().st_mode) for path in written if stat.S_IMODE(path.stat().st_mode) & 0o077}
    assert opened == {}
