"""Options that several commands share, declared once; importing them imports no task and no method."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from common.errors import ConfigError

if TYPE_CHECKING:
    from client.data.schemes import Scheme
    from client.data.tables.schema import Dialect


def list_methods() -> list[str]:
    """Return the names of methods and planners."""
    from common.methods.planners import method_names

    return list(method_names())


def list_tasks() -> list[str]:
    """Return the names of tasks."""
    from common.tasks.registry import TASKS

    return list(TASKS)


def list_models() -> list[str]:
    """Return the names of networks."""
    from common.tasks.networks import model_names

    return list(model_names())


def list_runs() -> list[str]:
    """Return the names of the stored runs, newest first."""
    from deploy.federation.runs import runs_folder

    configs = runs_folder().glob("*/config.toml")
    return [path.parent.name for path in sorted(configs, key=lambda path: path.stat().st_mtime, reverse=True)]


def list_keys() -> list[str]:
    """Return the keys of all options."""
    from common.config.parse import option_keys

    return list(option_keys())


def read_seed(seed: object) -> int:
    """Return a seed.

    Raises:
        ConfigError: It is no whole number, or several.
    """
    try:
        return int(str(seed))
    except ValueError:
        raise ConfigError(f"--seed: '{seed}' is not a whole number; fedloom sweep --seed 1,2,3 takes several") from None


Runs = Annotated[
    list[str] | None, typer.Argument(autocompletion=list_runs, help="Runs, by name or folder; default: the newest.")
]
Checkpoint = Annotated[
    str,
    typer.Option(
        metavar="best|final|ROUND",
        help="Use the model of the best validated round, of the last round or of this round; default: best if there is one.",
    ),
]
Ui = Annotated[bool, typer.Option("--ui", help="Serve a live page of the run to this machine, as `fedloom ui` does.")]
Examples = Annotated[
    bool,
    typer.Option(
        "--examples",
        help="Store examples of the model's answers for your own data too; generated data always have them.",
    ),
]
Port = Annotated[int, typer.Option(min=1, max=65535, help="Let clients connect to this port.")]
ControlPort = Annotated[
    int, typer.Option(min=1, max=65535, help="Serve Flower's Control API on this port, for this machine only.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout and everything else on stderr.")]
Json = Annotated[
    bool, typer.Option("--json", help="Print result.json as the last line of stdout and everything else on stderr.")
]


LOCAL = Path(".fedloom")
"""Folder of certificates, keys and private state of `up` and `serve` on this machine: private."""

STATE = Path("~/.fedloom/state")
"""Default folder of the private state of clients that join, for `expand_home`."""


Method = Annotated[
    str,
    typer.Option(
        autocompletion=list_methods,
        help="Train by this method or planner (see `fedloom methods`); default: the task's own (see `fedloom tasks`).",
    ),
]
Task = Annotated[
    str,
    typer.Option(
        autocompletion=list_tasks, help="Train this task (see `fedloom tasks`); default: the method's own, or rules."
    ),
]
Model = Annotated[
    str,
    typer.Option(
        autocompletion=list_models,
        help="Train this network: paper, as the task's paper does, or one of a package (see `fedloom methods`);"
        " default: the most accurate one.",
    ),
]
Rounds = Annotated[
    int | None,
    typer.Option(help="Train so many rounds; default: 30, or without --method the task's own (see `fedloom tasks`)."),
]
Epsilon = Annotated[
    float | None,
    typer.Option(help="Add noise to everything that clients send: ε of the whole run. --set privacy.* sets the rest."),
]
Delta = Annotated[float | None, typer.Option(help="Set δ of --epsilon; default: 1e-5.")]
Alone = Annotated[
    bool,
    typer.Option(help="Compare with models that up to 2,000 clients train alone here, for as many steps as the run."),
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        autocompletion=lambda: [f"{key}=" for key in list_keys()],
        help="Set any option of `fedloom config --list`, such as algorithm.fedrule.lam=0.5; repeatable.",
    ),
]
Test = Annotated[
    str,
    typer.Option(metavar="FILE", help="Hold out the records of this file (task sessions); default: a share of each."),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="NAME=TITLE",
        help='Read the column with this title of your tables, such as user="Customer no."; repeatable.',
    ),
]
Decimal = Annotated[
    str, typer.Option(metavar="MARK", help="Read numbers of your tables with this decimal mark: auto, point or comma.")
]
Dates = Annotated[
    str,
    typer.Option(
        metavar="FORM", help="Read times of tables in this form: auto, iso, unix, excel, dmy, mdy, ymd or order."
    ),
]
Device = Annotated[
    str,
    typer.Option(
        metavar="auto|cpu|cuda|mps",
        help="Train clients on this device; auto: on an NVIDIA GPU if PyTorch finds one, else on the processor.",
    ),
]
Track = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=TARGET",
        help="Record in a tool: mlflow[=URI], wandb[=PROJECT], tensorboard=FOLDER, prometheus=FILE or =[HOST:]PORT; "
        "repeatable.",
    ),
]
SkipLines = Annotated[int, typer.Option(min=0, help="Leave so many lines above the header of your tables out.")]
Ignore = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="Do not read this column of your tables; repeatable.")
]
DropEmpty = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Leave rows without a value of this column of your tables out; repeatable."),
]
Where = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN=VALUE", help="Read only rows of your tables with this value; repeatable."),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        metavar="VALUE|WORD=NUMBER",
        help="Take this text or number, such as -999, for a missing value, or a word for a number; repeatable."
        " The word `none` takes no number for one, and `text` each cell that is no number or time.",
    ),
]
Encoding = Annotated[
    str, typer.Option(metavar="NAME", help="Read text in this encoding, such as cp1252; default: UTF-8 or UTF-16.")
]
Wide = Annotated[
    bool, typer.Option("--wide", help="Read each further column as a sensor (task traffic) or an item (task ratings).")
]
Catalogue = Annotated[
    Path | None,
    typer.Option(
        help="Use this public vocabulary (JSON), or federated: the one that the clients find; default: the one of the data."
    ),
]
SharedCatalogue = Annotated[
    Path | None,
    typer.Option(
        "--catalogue",
        help="Use this public vocabulary (JSON), or federated: clients find it; default: the one of the embedded data.",
    ),
]
Clients = Annotated[
    int | None,
    typer.Option(min=1, help="Wait for so many clients before the first round; default: 2, or the resumed run's own."),
]
SuperLinkState = Annotated[
    Literal["memory", "sqlite"],
    typer.Option(help="Keep messages in memory, or in a database file that outlives the server's process."),
]
StateDir = Annotated[
    Path, typer.Option(help="Find clients' private state here; give the folder that `fedloom join` was given.")
]
Partition = Annotated[
    str,
    typer.Option(
        metavar="COLUMN|SCHEME",
        help="Make each value of this column of your tables one client; or partition units among --clients by iid, linear,"
        " square, exponential, dirichlet:ALPHA or pathological:SHARDS.",
    ),
]


CLIENTS_FILE = "clients.toml"
"""File that makes a folder of data those of a hub, and names its clients."""

NEWCOMER = "newcomer"
"""Default name of a client that adapts a model; its state folder depends on its data."""


@dataclass(frozen=True)
class ServerRequest:
    """Server of a client, and the keys of both."""

    server: Annotated[str, typer.Option(metavar="HOST:PORT", help="Train with this federation's server.")] = ""
    ca: Annotated[
        Path | None, typer.Option(help="Trust this certificate authority (ca.pem), from the server's owner.")
    ] = None
    key: Annotated[
        Path | None, typer.Option(help="Identify this node by this private key (see `fedloom keys node`).")
    ] = None
    patience: Annotated[
        float, typer.Option(min=0, help="Keep asking for so many seconds while the server has not admitted the key.")
    ] = 600.0
    invite: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Join by this invitation (*.fedloom) of the server's owner.")
    ] = None
    code: Annotated[str, typer.Option(help="Join only if the invitation has this check code, read by its sender.")] = ""
    accept: Annotated[
        str,
        typer.Option(
            metavar="FILE|policy",
            help="Agree to the terms in this file, or to each run that the policy allows; default: to those of the invitation,"
            " or the server's first.",
        ),
    ] = ""
    insecure: Annotated[bool, typer.Option(help="Join without TLS; for experiments on one machine.")] = False


@dataclass(frozen=True)
class ClientRequest:
    """Client with its private state."""

    task: Annotated[
        str, typer.Option(help="Read the data as data of this task; default: rules, or the task of RUN.")
    ] = ""
    shard: Annotated[
        str, typer.Option(metavar="k/K", help="Use the k-th (from 0) of K partitions of the data only.")
    ] = ""
    name: Annotated[
        str, typer.Option(help=f"Set the stable public name; default: from the key, or {NEWCOMER} with --adapt.")
    ] = ""
    state_dir: Annotated[Path, typer.Option(help="Store this client's private state here.")] = STATE
    ledgers: Annotated[
        Path | None, typer.Option(help="Store privacy ledgers in this folder instead of beside the data.")
    ] = None
    device: Device = "cpu"


@dataclass(frozen=True)
class PolicyRequest:
    """Limits set by the owner of the data."""

    policy: Annotated[
        Path | None, typer.Option(help="Apply this policy file (TOML): methods, tasks, noise, counts, steps.")
    ] = None
    methods: Annotated[
        list[str] | None,
        typer.Option("--method", help="Take part in runs of this method only; repeatable; default: all methods."),
    ] = None
    epsilon: Annotated[
        float | None,
        typer.Option(help="Limit the privacy loss of the data to this ε over all runs; refuse runs without noise."),
    ] = None
    delta: Annotated[float | None, typer.Option(help="Set δ of --epsilon; default: the policy's, or 1e-5.")] = None


@dataclass(frozen=True)
class RunRequest:
    """Options of a run that every training command takes."""

    method: Method = ""
    task: Task = ""
    model: Model = ""
    rounds: Rounds = None
    seed: Annotated[
        int | None,
        typer.Option(
            parser=read_seed,
            metavar="INTEGER",
            help="Seed every random choice but privacy noise; one seed gives one result. Default: 0.",
        ),
    ] = None
    epsilon: Epsilon = None
    delta: Delta = None
    sets: Sets = None
    run_id: Annotated[str, typer.Option(help="Name the run's folder; default: date, method and task.")] = ""
    resume: Annotated[
        str, typer.Option(metavar="ID", autocompletion=list_runs, help="Continue this run from its newest checkpoint.")
    ] = ""
    start_from: Annotated[
        str,
        typer.Option(
            metavar="RUN",
            autocompletion=list_runs,
            help="Start from the model, or the sums, of this finished run, with its options and further names.",
        ),
    ] = ""
    half_life: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="DAYS",
            help="With --start-from: let sums lose half of their weight in so many days; default: they keep it.",
        ),
    ] = None
    round: Annotated[
        int | None,
        typer.Option(min=1, help="With --resume: go back to this round's checkpoint, and remove what followed it."),
    ] = None
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Take options from this TOML file, such as runs/ID/config.toml; --set and other options come after it.",
        ),
    ] = None
    patience: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Hold out validation data, and end the run after so many rounds without a gain on them; 0: never. "
            "Default: 20 for `fedloom up` without noise, else 0.",
        ),
    ] = None
    min_delta: Annotated[
        float | None, typer.Option(min=0, help="Count a gain of --patience above this value; default: 0.")
    ] = None
    helpers: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=5,
            help="Sum masked replies with so many helpers; 0: each client by itself. `up` starts 2 for a closed form.",
        ),
    ] = None
    new_helpers: Annotated[
        bool, typer.Option("--new-helpers", help="With --resume: replace helpers that are gone.")
    ] = False
    track: Track = None


@dataclass(frozen=True)
class ClusterRequest:
    """Options of the place where a large population trains."""

    engine: Annotated[
        str,
        typer.Option(
            metavar="processes|ray", help="Train thousands of clients in processes here, or as actors of Ray."
        ),
    ] = "processes"
    address: Annotated[
        str,
        typer.Option(metavar="HOST:PORT", help="With --engine ray: use this cluster; default: a Ray on this machine."),
    ] = ""
    gpus: Annotated[
        float, typer.Option(min=0, max=1, help="With --engine ray: share of a GPU for each worker; 0 for none.")
    ] = 0.0


@dataclass(frozen=True)
class TableRequest:
    """Options of reading tables, which every command with data takes."""

    columns: Columns = field(default=None, kw_only=True)
    decimal: Decimal = field(default="auto", kw_only=True)
    dates: Dates = field(default="auto", kw_only=True)
    skip_lines: SkipLines = field(default=0, kw_only=True)
    ignore: Ignore = field(default=None, kw_only=True)
    drop_empty: DropEmpty = field(default=None, kw_only=True)
    where: Where = field(default=None, kw_only=True)
    missing: Missing = field(default=None, kw_only=True)
    encoding: Encoding = field(default="", kw_only=True)
    wide: Wide = field(default=False, kw_only=True)


@dataclass(frozen=True)
class DataRequest(TableRequest):
    """Options of data."""

    data: Annotated[
        str, typer.Option(help="Use this data file or folder of files; 'demo' generates the task's embedded data.")
    ] = "demo"

    @property
    def scheme(self) -> "Scheme | None":
        """Scheme of a partition among clients; None for a column and for the default.

        Raises:
            ConfigError: The scheme has no such number.
        """
        from client.data.schemes import scheme_of

        return scheme_of(str(getattr(self, "partition", "")))

    @property
    def dialect(self) -> "Dialect":
        """Columns and forms of the owner's tables.

        Raises:
            ConfigError: An option has no such form or value, or the data are embedded.
        """
        from client.data.dataset import is_demo
        from client.data.tables.schema import Dialect
        from common.errors import ConfigError

        given = {name: value for name, value in vars(self).items() if name != "data"}
        if self.scheme:
            del given["partition"]
        partition = str(given.get("partition", ""))
        dialect = Dialect.of(**{**given, "columns": self.columns or ()})
        options = [*dialect.options, *[f"--partition {partition}"][: bool(partition)]]
        if options and is_demo(self.data):
            schemes = " or, with --clients, give a scheme such as iid" * bool(partition)
            raise ConfigError(f"{options[0]} needs your own data; name them with --data{schemes}")
        return dialect


@dataclass(frozen=True)
class TrainingData(DataRequest):
    """Options of data that several clients share."""

    partition: Partition = ""
