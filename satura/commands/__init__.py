"""What the commands of satura/cli.py do."""
