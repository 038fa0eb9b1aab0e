"""Verifying an answer: every check in turn, and what is left of it on trust."""

from catalog.columns import Columns
from catalog.owned import OwnedMachine
from catalog.snapshot import snapshot_id_of
from planner.verify.claim import Claim
from planner.verify.context import Context, context_of
from planner.verify.identity import identity, machines_of
from planner.verify.infeasible import check_infeasible
from planner.verify.planned import check_planned
from planner.verify.report import Verification
from planner.verify.standby import REPLAYED

#: Believed in every document: what was asked, under which assumptions, and prose.
INPUTS = (("job",), ("settings",), ("version",), ("snapshot_id",), ("id",))
#: What only some documents have: what past runs taught, own machines, and how a search for phases went.
SOME = (("learned",), ("inventory",), ("certificate", "over"))
PROSE = (("warnings",),)
PROSE_OF_A_PLAN = (
    ("assumptions",),
    ("certificate", "solver"),
    ("certificate", "enumeration", "layouts"),
    ("certificate", "enumeration", "left_out"),
)
TAKEN = (
    "the job, the settings and what past runs taught, as the document states them: they are what was asked",
    (
        "the estimator's time, spread, memory and layout of every machine, and the job's FLOPs, bytes and parameters: "
        "the one part of the planner that the verification asks"
    ),
    "the prices, interruption rates and hardware in the snapshot, and the catalogue's tables of storage, egress, power and grid",
    "that the rates of own machines are those of the inventory given",
    "that no other pair of interruptible machines and standby is cheaper, and that a fallback is the best there is",
    (
        "figures of a standby or fallback within the interval of the replayed runs and what the planner's model of the rule "
        f"may be off by: {', '.join(f'{name} {room.share:.1%}' for name, room in REPLAYED.items())}; hours more where a run "
        "has few segments between checkpoints"
    ),
    (
        "differences that rounding explains: 1.5e-8 of a number, a micro-dollar of a sum, 2e-8 to 2e-7 of what follows from figures of "
        "the document"
    ),
    "the sentences under the plan, those on how the search for phases went, and the name of the solver",
)


def verified(claim: Claim, columns: Columns, *, owned: tuple[OwnedMachine, ...] = ()) -> Verification:
    """The claim held against the columns of its snapshot and the user's `owned` machines.

    Own machines compete only where the plan was made with some. Raises `UnusableInput` at the field for a document that
    cannot be read, for one made with other machines, and for a job that contradicts itself.
    """
    owned = machines_of(claim, owned)
    context = context_of(claim, columns, owned)
    ledger = context.ledger
    ledger.trust(*INPUTS, *PROSE, *(PROSE_OF_A_PLAN if claim.planned else ()), *(at for at in SOME if ledger.has(*at)))
    identity(context)
    _snapshot(context)
    covers = check_planned(context) if claim.planned else check_infeasible(context)
    ledger.close()
    return Verification(
        part=claim.part,
        id=ledger.text("id"),
        snapshot_id=columns.snapshot_id,
        version=ledger.text("version"),
        checks=ledger.checks(),
        wrong=ledger.wrong,
        covers=covers,
        taken=TAKEN,
    )


def _snapshot(context: Context) -> None:
    """The rows hash to the id: they are those that the plan was made on."""
    columns = context.columns
    found = snapshot_id_of(columns.instance_types, (columns.offer(i) for i in range(len(columns))))
    context.ledger.is_same("snapshot", ("snapshot_id",), found, "not the hash of the rows that are stored under it")
