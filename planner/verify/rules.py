"""The checks of a verification, each with its basis and the statement that it checks."""

from dataclasses import dataclass

#: Whether a check is independent of the estimator.
INDEPENDENT = "independent"
ESTIMATES = "estimates"
BASES = {
    INDEPENDENT: "recomputed from the snapshot, the catalogue's tables and the plan's own job and settings",
    ESTIMATES: "uses the estimator's time and memory per machine, which are not recomputed independently",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One kind of check: its basis, and the statement that it checks."""

    name: str
    basis: str
    says: str


RULES = (
    Rule(name="identity", basis=INDEPENDENT, says="the id is the hash of everything else in the document"),
    Rule(name="snapshot", basis=INDEPENDENT, says="the stored rows hash to the snapshot's id"),
    Rule(
        name="prices",
        basis=INDEPENDENT,
        says="every named offer is in the snapshot with its price, date, source and applicable discounts",
    ),
    Rule(name="requirements", basis=INDEPENDENT, says="every choice is allowed by the job and eligible"),
    Rule(
        name="work",
        basis=INDEPENDENT,
        says="throughput, hours, goodput, use of the peak and layout of a phase agree with each other and with the work",
    ),
    Rule(
        name="memory",
        basis=INDEPENDENT,
        says="the peak fits into the device and is at least the states that the layout puts on it",
    ),
    Rule(
        name="hours", basis=INDEPENDENT, says="set-up, preemption, restarts and spread follow from the phase's figures"
    ),
    Rule(
        name="cost",
        basis=INDEPENDENT,
        says="every part of the cost follows from price, hours and place, and the parts sum to the total",
    ),
    Rule(
        name="finish", basis=INDEPENDENT, says="the finish, and the probability of the deadline, follow from the hours"
    ),
    Rule(name="carbon", basis=INDEPENDENT, says="carbon is power x hours x PUE x the region's grid"),
    Rule(name="estimates", basis=ESTIMATES, says="time, memory and layout of a machine equal those of this estimator"),
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
        name="counts",
        basis=ESTIMATES,
        says="the stated numbers of considered and rejected offers and configurations are correct",
    ),
    Rule(
        name="alternatives",
        basis=ESTIMATES,
        says="alternatives, frontier, commitments, credits, fallback and sensitivity follow from the same enumeration",
    ),
    Rule(
        name="ladder",
        basis=INDEPENDENT,
        says="chances and expected cost of the capacity ladder follow from the table of chances, in every state of shortage",
    ),
    Rule(
        name="infeasibility",
        basis=ESTIMATES,
        says="every configuration breaks a requirement; conflicts and least relaxations follow from these",
    ),
    Rule(name="completeness", basis=INDEPENDENT, says="a check covers every figure of the document"),
)
