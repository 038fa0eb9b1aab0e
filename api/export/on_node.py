"""What every node of a run starts, in each format: `run-on-node.sh`, and the variables that it reads."""

from importlib.resources import files

#: The script as it stands in the package.
SCRIPT = files("api.export").joinpath("run-on-node.sh").read_text(encoding="utf-8")
