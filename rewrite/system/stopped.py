"""What a signal raises that ends the process."""

from __future__ import annotations


class Stopped(SystemExit):
    """The exit that a signal asks for: no function of a user is to blame."""
