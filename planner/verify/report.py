"""What came of verifying a plan: every check with what it rests on, and every figure that is wrong."""

from dataclasses import dataclass
from typing import Any

#: What a check rests on.
INDEPENDENT = "independent"
ESTIMATES = "estimates"
BASES = {
    INDEPENDENT: "worked out anew from the snapshot, the catalogue's tables and the plan's own job and settings",
    ESTIMATES: "rests on the estimator's time and memory per machine, which are taken from it and not derived anew",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One kind of check: what it rests on and what it says."""

    name: str
    basis: str
    says: str


RULES = (
    Rule(name="identity", basis=INDEPENDENT, says="the id is the hash of everything else in the document"),
    Rule(name="snapshot", basis=INDEPENDENT, says="the stored rows hash to the snapshot's id"),
    Rule(
        name="prices",
        basis=INDEPENDENT,
        says="every offer named is in the snapshot, at its price, date and source, with the discounts that hold for it",
    ),
    Rule(name="requirements", basis=INDEPENDENT, says="everything chosen is allowed by the job and can be had"),
    Rule(
        name="work",
        basis=INDEPENDENT,
        says="throughput, hours, goodput, use of the peak and layout of a phase agree with each other and with the work",
    ),
    Rule(
        name="memory",
        basis=INDEPENDENT,
        says="the peak fits into the device, and is no less than the states that the layout leaves on it",
    ),
    Rule(
        name="hours", basis=INDEPENDENT, says="set-up, preemption, restarts and spread follow from the phase's figures"
    ),
    Rule(
        name="cost", basis=INDEPENDENT, says="every part of the bill follows from price, hours and place, and they sum"
    ),
    Rule(
        name="finish", basis=INDEPENDENT, says="the finish, and the probability of the deadline, follow from the hours"
    ),
    Rule(name="carbon", basis=INDEPENDENT, says="carbon is power x hours x PUE x the region's grid"),
    Rule(name="estimates", basis=ESTIMATES, says="time, memory and layout of a machine are what this estimator says"),
    Rule(
        name="replayed",
        basis=INDEPENDENT,
        says="averages and quantiles of a standby lie in the interval of its rule, replayed thousands of times from a fixed seed",
    ),
    Rule(
        name="bound",
        basis=ESTIMATES,
        says="no offer of the snapshot, at any whole node count allowed, and no pair in phases meets the requirements for less",
    ),
    Rule(
        name="counts", basis=ESTIMATES, says="as many offers and configurations were considered and rejected as it says"
    ),
    Rule(
        name="alternatives",
        basis=ESTIMATES,
        says="alternatives, frontier, commitments, credits, fallback and sensitivity are what the same enumeration gives",
    ),
    Rule(
        name="infeasibility",
        basis=ESTIMATES,
        says="every configuration breaks a requirement; conflicts and least relaxations follow from which",
    ),
    Rule(name="completeness", basis=INDEPENDENT, says="there is no figure in the document that no check speaks of"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """A figure that is not what it should be: where it stands, what it says, what was found, and why it is wrong."""

    figure: str
    check: str
    stated: Any
    found: Any
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One rule, how many figures were held against it, and how many of them are wrong."""

    rule: Rule
    figures: int
    wrong: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """`covers` says what the bound was held against, `taken` what is believed and not checked."""

    part: str
    id: str
    snapshot_id: str
    version: str
    checks: tuple[Check, ...]
    wrong: tuple[Wrong, ...]
    covers: dict[str, Any]
    taken: tuple[str, ...]

    @property
    def verified(self) -> bool:
        """Whether nothing is wrong."""
        return not self.wrong
