"""Command line `fedloom`; importing it imports no command."""

import atexit
import gc
import os
import sys


def main() -> None:
    """Run the command line; an expected error becomes one line and the exit code of its class."""
    try:  # around the imports too, which take a while
        from common.files import close_to_others
        from deploy.cli.app import app

        close_to_others()
        atexit.register(gc.freeze)  # Python would search all objects of torch once more before it ends
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # BLAS reads it at its import; the matrices are small
        os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # gRPC reads it at its import, also in a fork server
        app(prog_name="fedloom")
    except KeyboardInterrupt:
        sys.exit(130)  # as a shell says after SIGINT
    except Exception as error:
        from common.registry import name_package
        from deploy.cli.output import describe_error, find_exit_code, print_error

        named = name_package(error)
        if (code := find_exit_code(named)) is None:
            raise
        print_error(describe_error(named))
        sys.exit(code)
