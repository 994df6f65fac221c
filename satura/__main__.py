"""`python -m satura` is the command `satura`."""

from satura.cli import main

main()
