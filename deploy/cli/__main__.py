"""`python -m deploy.cli` is `fedloom`."""

from deploy.cli import main

main()
