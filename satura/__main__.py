"""`python -m satura` is the command `satura`."""

from satura.commands.cli import main

main()
