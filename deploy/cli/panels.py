"""Headings of options in the help of a command."""

WHAT, DATA, PRIVACY, WHERE, OUTPUT = PANELS = ("What", "Data", "Privacy", "Where", "Output")

OPTIONS = {
    DATA: "--data --column --decimal --dates --test --catalogue --shard",
    PRIVACY: "--epsilon --delta --policy --ledgers --raise-to",
    WHERE: "--server --ca --key --patience --insecure --name --state-dir --state --clients --together --host --home"
    " --port --control-port --control --nodes --work",
    OUTPUT: "--run-id --out --json --top --help",
}
"""Heading -> its options; others are of WHAT, unless an option names its own `rich_help_panel`."""


def find_panel(option: str) -> str:
    """Return the heading of an option."""
    return next((panel for panel, names in OPTIONS.items() if option in names.split()), WHAT)
