"""Availability traces as files: spot availability by zone, in the format of the public spot traces.

    {"metadata": {"gap_seconds": 300}, "data": [0, 1, 1, 0, ...]}

`data` holds one value per probe: availability (0/1, false/true) or the number of available machines. A gpuplan file
may also name the zone: `"name": "us-east-1a"`; the default is the file's name. Several zones may share a file as
`{"metadata": {...}, "zones": {"us-east-1a": [...], "us-east-1b": [...]}}`.

The public traces have their zone in the file's name, `KIND__N-node__aws-DAY__ZONE_CARD_COUNT`; files that differ in their
zone alone were recorded together.
"""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.planner.spot_policy.availability_traces import Trace

#: One probe per minute for five years.
MOST_PROBES = 3_000_000
#: From a second to a day.
_GAPS = (1, 86_400)
_MOST_NODES = 100_000
#: Bytes of three million probes as text, with spaces.
_MOST_BYTES = 32 * 1024 * 1024
_PUBLIC_NAME = re.compile(r"^(?P<before>.+__\d+-node__aws-[\d-]+__)(?P<zone>[a-z0-9-]+\d[a-z])(?P<after>_.+_\d+)$")
_FORMAT = 'write {"metadata": {"gap_seconds": 300}, "data": [0, 1, 1, ...]}'


def trace_files(path: Path, *, field: str) -> tuple[Path, ...]:
    """The file itself, or the `.json` files of a folder in the order of their names. Raises `UnusableInput`."""
    if not path.is_dir():
        return (path,)
    files = tuple(sorted(path.glob("*.json")))
    if not files:
        raise UnusableInput.at(field, message=f"{str(path)!r} holds no .json file; {_FORMAT}")
    return files


def zone_and_set(name: str) -> tuple[str, str]:
    """The zone of a trace and the name of the set that was recorded with it: of public traces by their file name.

    Other traces are named by their zone, and were all recorded together.
    """
    public = _PUBLIC_NAME.match(name)
    return (name, "traces") if public is None else (public["zone"], f"{public['before']}*{public['after']}")


def read_traces(path: Path, *, field: str) -> tuple[Trace, ...]:
    """The traces in the file that the user named at `field`; a trace without a name has the file's. Raises `UnusableInput`."""
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UnusableInput.at(field, message=f"cannot read {str(path)!r}: {error.strerror}") from error
    if len(text) > _MOST_BYTES:
        raise UnusableInput.at(field, message=f"{path.name} is larger than {_MOST_BYTES:,} bytes; give shorter traces")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise UnusableInput.at(field, message=f"{path.name} is not JSON; {_FORMAT}") from None
    try:
        return parse_traces(document, name=path.stem)
    except UnusableInput as error:
        raise error.under(field, path.name) from None


def parse_traces(document: Any, *, name: str) -> tuple[Trace, ...]:
    """The traces of one document; `name` is used where the document names no zone. Raises `UnusableInput`."""
    if not isinstance(document, dict):
        raise UnusableInput(Fault((), f"{shown(document)} is not a trace; {_FORMAT}"))
    step_hours = _gap_seconds(document.get("metadata")) / 3600
    zones = document.get("zones")
    if zones is None:
        named = document.get("name", name)
        if not isinstance(named, str) or not named.strip():
            raise UnusableInput.at("name", message=f"{shown(named)} is not accepted; write the zone's name as text")
        return (Trace(name=named, step_hours=step_hours, available=_counts(document.get("data"), "data")),)
    if not isinstance(zones, dict) or not zones:
        raise UnusableInput.at("zones", message=f"{shown(zones)} is not accepted; write a list of probes per zone")
    return tuple(
        Trace(name=str(zone), step_hours=step_hours, available=_counts(probes, "zones", str(zone)))
        for zone, probes in zones.items()
    )


def _gap_seconds(metadata: Any) -> float:
    gap = metadata.get("gap_seconds") if isinstance(metadata, dict) else None
    low, high = _GAPS
    if isinstance(gap, bool) or not isinstance(gap, int | float) or not low <= gap <= high:
        message = f"{shown(gap)} is not accepted; write the seconds between probes, {low} to {high}"
        raise UnusableInput.at("metadata", "gap_seconds", message=message)
    return float(gap)


def _counts(probes: Any, *path: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    if not isinstance(probes, list) or not probes:
        raise UnusableInput.at(*path, message=f"{shown(probes)} is not accepted; {_FORMAT}")
    if len(probes) > MOST_PROBES:
        raise UnusableInput.at(*path, message=f"{len(probes)} probes are too many; at most {MOST_PROBES} are accepted")
    for i, probe in enumerate(probes):
        if not isinstance(probe, int) or not 0 <= probe <= _MOST_NODES:
            message = f"{shown(probe)} is not accepted; write 0 or 1, or the number of available machines"
            raise UnusableInput.at(*path, i, message=message)
    return np.array(probes, dtype=np.int64)


def distinct(traces: tuple[Trace, ...], *, field: str) -> tuple[Trace, ...]:
    """The traces, checked for unique names. Raises `UnusableInput`."""
    names = sorted(trace.name for trace in traces)
    for one, other in pairwise(names):
        if one == other:
            raise UnusableInput.at(field, message=f"{one!r} is given twice; name each zone once")
    return traces
