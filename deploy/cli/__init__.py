"""Command line `fedloom`; importing it imports no command."""

import sys


def main() -> None:
    """Run the command line; a FedloomError becomes one line and exit status 2 (wrong use) or 1 (failure)."""
    from deploy.cli.app import app

    try:
        app()
    except Exception as error:
        _fail(error)


def _fail(error: Exception) -> None:
    """Print an expected error in one line and exit; raise any other again."""
    from common.errors import ConfigError, FedloomError
    from deploy.cli.output import print_error

    if isinstance(error, FedloomError):
        print_error(str(error))
        sys.exit(2 if isinstance(error, ConfigError) else 1)
    if isinstance(error, OSError):  # a folder without write permission, a full disk
        print_error(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        sys.exit(1)
    raise error
