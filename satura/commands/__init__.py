"""The command line: `cli.py` reads arguments, the other files do what the commands do."""
