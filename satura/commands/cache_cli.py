"""The commands `satura cache show` and `satura cache clear`."""

from __future__ import annotations

import typer

from satura.commands.options import AsJson

cache_app = typer.Typer(
    help="The folder of compiled kernels, remembered schedules and programs, and calibrated rates:"
    " the one that the environment variable SATURA_CACHE names, or else one of the user's.",
    no_args_is_help=True,
)


@cache_app.command("show")
def cache_show(json: AsJson = False) -> None:
    """Show where kernels, schedules, programs and calibrated rates are kept, and their sizes."""
    from satura.commands.cache import show

    show(json)


@cache_app.command("clear")
def cache_clear(json: AsJson = False) -> None:
    """Remove all compiled kernels, and remembered schedules and programs. The rates that `satura
    calibrate` has measured stay."""
    from satura.commands.cache import clear

    clear(json)
