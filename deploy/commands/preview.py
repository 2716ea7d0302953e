"""`fedloom check` and `preview`: what training reads from data, and what a client would send."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from common.errors import ConfigError
from common.options import Scalar
from deploy.cli import options as o
from deploy.cli.signature import spread

if TYPE_CHECKING:
    from common.config.run import RunConfig
    from common.contract import Contract
    from common.tasks.vocabulary import Vocabulary
    from deploy.simulation.preview import Preview


@spread
def preview(
    source: o.DataRequest,
    state_dir: o.StateDir = o.STATE,
    ledgers: Annotated[
        Path | None, typer.Option(help="Find privacy ledgers in this folder instead of beside the data.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the bytes of the messages to this ZIP file.")
    ] = None,
    terms: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the terms of the run to this file, for fedloom join --accept."),
    ] = None,
    json: o.AsJson = False,
    invite: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Take task, method, rounds, privacy and vocabulary from this invitation."),
    ] = None,
    task: o.Task = "",
    method: o.Method = "",
    model: o.Model = "",
    rounds: o.Rounds = None,
    epsilon: o.Epsilon = None,
    delta: o.Delta = None,
    sets: o.Sets = None,
    test: o.Test = "",
    policy: Annotated[
        Path | None, typer.Option(help="Show what this policy file (TOML) would refuse; default: the default policy.")
    ] = None,
    catalogue: o.Catalogue = None,
    details: Annotated[bool, typer.Option("--details", help="Show every field of every message.")] = False,
) -> None:
    """Show what a client would send, without sending it.

    Makes one real round on the data in this process, with a new model, and with state and ledger in memory. Says what leaves,
    what it may reveal and what noise leaves of it. --details has every field with shape, type, bytes, protection, norms and
    example values. Opens no connection, and changes neither ledger nor state folder.
    """
    import torch

    from client.data.dataset import is_demo
    from client.data.read import read_all, with_test
    from client.owner.policy import read_policy
    from deploy.cli.output import print_object, say
    from deploy.data.budgets import list_statements
    from deploy.files import write_file
    from deploy.simulation.preview import as_json, ledger_costs, lines_of, preview_messages, sentences

    torch.set_num_threads(1)
    limits = read_policy(policy, is_generated=is_demo(source.data))
    request = o.RunRequest(method, task, model, rounds, None, epsilon, delta, sets)
    config, vocabulary, contract, lines = _configure(request, invite, catalogue)
    text = with_test(config.task, source.data, test)
    data = read_all(config.task, text, vocabulary=vocabulary, dialect=source.dialect)
    statements, broken = list_statements(text, state_dir, ledgers)
    found = preview_messages(config, data, limits)
    costs = ledger_costs(config, statements)
    if json:
        print_object({"terms": contract.model_dump(mode="json"), "contract": contract.hash, **as_json(found, costs)})
    else:
        for line in (
            *sentences(found),
            f"terms {contract.short_hash} of the run",
            *lines,
            *lines_of(found, costs, details=details),
            *(f"ledger cannot be used: {error}" for error in broken),
        ):
            say(line)
    if terms:
        write_file(terms, contract.canonical().encode(), overwrite=True)
    if save:
        _save(found, save)


def _configure(
    request: o.RunRequest, invite: Path | None, catalogue: Path | None
) -> tuple["RunConfig", "Vocabulary | None", "Contract", list[str]]:
    """Return configuration, vocabulary, terms and their lines, of the options or of an invitation.

    Raises:
        ConfigError: The file is no invitation, or an option contradicts it.
    """
    from json import dumps

    from common.contract import terms_of
    from common.tasks.registry import read_vocabulary
    from common.tasks.vocabulary import FEDERATED
    from deploy.data.sources import read_catalogue
    from deploy.federation.request import name_vocabulary, resolve
    from deploy.keys.invitation import read_invitation

    decided: dict[str, Scalar | None] = {"federation.min-clients": 1, "federation.wait": 1}
    if invite is None:
        config, catalogue = name_vocabulary(resolve(request, decided), catalogue)
        asked = terms_of(config, is_started=False)
        return config, read_catalogue(config.task, catalogue), asked, asked.lines()
    given = {name: getattr(request, name) for name in ("task", "method", "model", "rounds", "epsilon", "delta")}
    if named := next(
        (name for name, value in (given | {"catalogue": catalogue}).items() if value not in ("", None)), ""
    ):
        raise ConfigError(f"--{named} contradicts --invite, which names it; remove one of them")
    invitation = read_invitation(invite).check_catalogue()
    terms, is_found = invitation.terms, not invitation.catalogue
    invited = o.RunRequest(method=terms.methods[0], task=invitation.task, rounds=terms.rounds, sets=request.sets)
    noise = {} if terms.unit == "none" else terms.model_dump(include={"unit", "mechanism", "epsilon", "delta"})
    decided |= {f"privacy.{key}": value for key, value in noise.items()} | (
        {"catalogue": FEDERATED} if is_found else {}
    )
    config = resolve(invited, decided)
    vocabulary = None if is_found else read_vocabulary(config.task, dumps(invitation.catalogue))
    return config, vocabulary, terms, invitation.lines()


def _save(found: "Preview", path: Path) -> None:
    """Write each message as a file of a ZIP archive, readable by its owner only."""
    import io
    import zipfile

    from common.text import count
    from deploy.cli.output import note
    from deploy.files import write_file

    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for number, message in enumerate(found.messages, start=1):
            archive.writestr(f"{number:02d}-{message.kind}.bin", message.content)
    write_file(path, content.getvalue(), mode=0o600, overwrite=True)
    exact = "without noise they are" if found.config.privacy.unit == "none" else "values in plaintext are"
    messages = count(len(found.messages), "message")
    note(f"wrote {path}: the bytes of {messages}; {exact} private, so delete the file after use")


@spread
def check(
    task: Annotated[str, typer.Option(help="Read it as data of this task (see `fedloom tasks`).")],
    tables: o.TableRequest,
    file: Annotated[str, typer.Argument(metavar="DATA", help="Read this data file or folder of files.")] = "",
    data: Annotated[str, typer.Option(hidden=True, help="The same, as other commands name it.")] = "demo",
    partition: o.Partition = "",
    catalogue: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the vocabulary of the data to this file (JSON).")
    ] = None,
    clients: Annotated[
        int, typer.Option(min=0, help="Partition the data among so many clients, and name those with too little.")
    ] = 0,
    json: o.AsJson = False,
) -> None:
    """Show what training would read from your data.

    Reads the data as training does. Shows rows read and left out, forms of numbers and dates, units of data, and what a client
    could learn. Nothing leaves this machine, and no row is printed. The exit status is 3 if nobody has anything to train on.
    """
    from common.tasks.registry import TASKS
    from common.text import printable
    from deploy.cli.output import note, print_object, say
    from deploy.data.check import check_data, lines_of, require_trainable
    from deploy.files import write_file

    TASKS[task]  # an unknown task is answered with the nearest names
    source = o.TrainingData(file or data, partition, **vars(tables))
    report = check_data(task, source.data, clients, source.dialect)
    if json:
        print_object(report.to_json())
    else:
        for line in lines_of(report):
            say(printable(line, 1_000))
    require_trainable(report)
    if catalogue:
        write_file(catalogue, report.vocabulary.encode())
        note(f"wrote {catalogue}: the names that a federation makes public; read it before you hand it on")
