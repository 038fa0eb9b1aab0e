"""A policy as a file: numpy's archive with the table of decisions, and a header that says what it was computed for.

Nothing in it is executed on reading (no pickles), and its declared size is checked before anything is unpacked.
"""

import json
import zipfile
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Never

import numpy as np

from gpuplan.api.observability.version import gpuplan_version
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.runtime.errors import StoreFailure, UnusableInput
from gpuplan.planner.spot_policy.policy_solver import MOST_CELLS, grid_of
from gpuplan.planner.spot_policy.run_parameters import Place, SpotTerms
from gpuplan.planner.spot_policy.solved_policy import Policy
from gpuplan.planner.spot_policy.zone_availability import ZoneChain

FORMAT = "gpuplan spot policy 1"
#: The first bytes of any such archive; YAML and JSON never begin so.
MAGIC = b"PK\x03\x04"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredPolicy:
    """A policy, the run's name, and what was assumed when it was solved."""

    name: str | None
    policy: Policy
    assumptions: tuple[str, ...]


def write_policy(path: Path, stored_policy: StoredPolicy) -> None:
    """Write to `path`, replacing what is there. Raises `StoreFailure` where that fails."""
    policy = stored_policy.policy
    header = {
        "format": FORMAT,
        "gpuplan": gpuplan_version(),
        "name": stored_policy.name,
        "assumptions": list(stored_policy.assumptions),
        "expected_usd": policy.expected_usd,
        "terms": asdict(policy.terms),
        "chains": [
            {"step_hours": chain.step_hours, "edges_hours": list(chain.edges_hours), "moves": chain.moves.tolist()}
            for chain in policy.chains
        ],
    }
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("wb") as file:
            np.savez_compressed(file, header=np.array(json.dumps(header)), actions=policy.actions)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise StoreFailure(f"the policy could not be written to {str(path)!r}: {error.strerror}") from error


def is_policy(path: Path) -> bool:
    """Whether the file begins like a kept policy; a missing one does not."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def read_policy(path: Path) -> StoredPolicy:
    """The policy in the file. Raises `UnusableInput` for anything that is not one, whole and consistent."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > MOST_CELLS + (1 << 20):
            _refuse(path, "it is larger than any policy")
        with np.load(path, allow_pickle=False) as held:
            header, actions = json.loads(str(held["header"])), held["actions"]
    except (OSError, ValueError, KeyError, RecursionError, zipfile.BadZipFile, zlib.error, EOFError):
        _refuse(path, "it is damaged, or another kind of file")
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        _refuse(path, "another version of gpuplan wrote it")
    try:
        terms, chains = _terms(header["terms"]), tuple(_chain(chain) for chain in header["chains"])
        expected, assumptions = (
            float(header["expected_usd"]),
            tuple(str(assumption) for assumption in header["assumptions"]),
        )
        name, grid = header["name"], grid_of(terms.checked())
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError, UnusableInput):
        _refuse(path, "its header lacks what a policy needs")
    states = int(np.prod([len(chain.moves) for chain in chains]))
    shape = (grid.steps + 1, grid.work + 1, grid.modes, states)
    whole = len(chains) == len(terms.places) and actions.dtype == np.int8 and actions.shape == shape
    if not whole or actions.min() < 0 or actions.max() > grid.places:
        _refuse(path, "its table does not fit its header")
    policy = Policy(terms=terms, chains=chains, grid=grid, actions=actions, expected_usd=expected)
    return StoredPolicy(name=name if isinstance(name, str) else None, policy=policy, assumptions=assumptions)


def _terms(fields: JsonObject) -> SpotTerms:
    places = tuple(Place(**place) for place in fields["places"])
    tables = {name: tuple(tuple(map(float, row)) for row in fields[name]) for name in ("move_hours", "move_usd")}
    return SpotTerms(**(fields | tables | {"places": places}))


def _chain(fields: JsonObject) -> ZoneChain:
    moves = np.array(fields["moves"], dtype=np.float64)
    edges = tuple(map(float, fields["edges_hours"]))
    if moves.shape != (2 * (len(edges) + 1),) * 2 or not np.allclose(moves.sum(axis=1), 1.0) or (moves < 0).any():
        raise ValueError("no chain")
    return ZoneChain(step_hours=float(fields["step_hours"]), edges_hours=edges, moves=moves)


def _refuse(path: Path, why: str) -> Never:
    message = f"{str(path)!r} holds no policy that can be used: {why}; make one with gpuplan run-policy RUN.yaml --save"
    raise UnusableInput.at("policy", message=message)
