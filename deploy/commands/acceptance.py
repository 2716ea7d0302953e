"""`join --invite`: server, authority, key and task of a client from an invitation."""

from dataclasses import replace
from pathlib import Path

from common.errors import ConfigError
from common.node_keys import default_name, fingerprint, to_word
from deploy.cli.output import note
from deploy.commands.join import ClientRequest, ServerRequest
from deploy.files import write_file
from deploy.invitation import Invitation, read_invitation
from deploy.keys import load_private_key, make_node_key

KEY_FILE = "node.key"
SERVERS = "servers"
"""Folder of the private state with the authorities of servers, stored at first use."""


def accept(at: ServerRequest, client: ClientRequest) -> tuple[ServerRequest, ClientRequest]:
    """Return the options of a client that joins by an invitation; print what its owner must check.

    A missing key is created. The invitation sets address, authority and task, and nothing that the policy limits.

    Raises:
        ConfigError: The invitation is malformed or contradicts an option, the code is another one, or the server had another
            authority before.
    """
    if at.invite is None:
        return at, client
    for option, value in (("--server", at.server), ("--ca", at.ca), ("--insecure", at.insecure)):
        if value:
            raise ConfigError(f"{option} contradicts --invite, which names server and CA; remove one of them")
    invitation = read_invitation(at.invite)
    if client.task not in ("", invitation.task):
        raise ConfigError(f"the invitation is to task {invitation.task}; remove --task {client.task}")
    note(f"invitation {at.invite}")
    for line in invitation.lines():
        note(line)
    if at.code and not invitation.has_code(at.code):
        raise ConfigError(
            f"the check code of {at.invite} is {invitation.code}, not {at.code[:40]!r}; ask its sender for the file again"
        )
    state = client.state_dir
    authority = store_authority(state, invitation)
    key = at.key or state / KEY_FILE
    if not key.exists() and at.key is None:
        make_node_key(key)
    public = load_private_key(key).public_key()
    name = client.name or default_name(fingerprint(public))
    note("the server's owner admits this client by\n  " + f"fedloom nodes add {to_word(public)} --name {name}")
    return replace(at, server=invitation.server, ca=authority, key=key), replace(client, task=invitation.task)


def store_authority(state: Path, invitation: Invitation) -> Path:
    """Return the file of a server's authority, stored at first use.

    Raises:
        ConfigError: Another authority is stored for the server's name.
    """
    path = state / SERVERS / f"{invitation.host}.pem"
    if not path.exists():
        write_file(path, invitation.ca_pem.encode(), mode=0o600)
        return path
    stored = invitation.model_copy(update={"ca_pem": path.read_text("ascii", "replace")})
    if stored.authority != invitation.authority:
        raise ConfigError(
            f"the invitation names another certificate authority for '{invitation.host}' than before:"
            f" SHA-256 {invitation.authority}, before {stored.authority}; ask the server's owner, and remove {path} if"
            " the new one is right"
        )
    return path
