"""A quota: the most accelerators or vCPUs that a provider lets an account use at once."""

from dataclasses import dataclass

#: Of `constraints.quotas`: keep to the quotas that are known, refuse a job if none is, or plan as if there were none.
KNOWN, RESPECT, IGNORE = "known", "respect", "ignore"
QUOTA_CHOICES = (KNOWN, RESPECT, IGNORE)
#: The kinds of prices that a quota is about: the interruptible ones, or the others.
SPOT, ON_DEMAND = "spot", "on_demand"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """A limit on concurrent accelerators or vCPUs of the matching machines; empty properties match everything.

    `family` is the beginning of an instance type's name up to a separator, or a glob. `price_kind` is spot or on_demand
    (all that is not interruptible). `code` is the provider's own name of the quota, to ask for more of it; `read_on` is the
    day (ISO 8601, UTC) on which the provider stated it, empty for one that was written by hand.
    """

    provider: str
    region: str = ""
    family: str = ""
    accelerator: str = ""
    instance_type: str = ""
    price_kind: str = ""
    accelerators: float | None = None
    vcpus: float | None = None
    code: str = ""
    read_on: str = ""

    @property
    def name(self) -> str:
        """The quota as text."""
        what = self.family or self.accelerator or self.instance_type or "all machines"
        kind = f" {self.price_kind.replace('_', ' ')}" if self.price_kind else ""
        return f"{self.unit} of {what}{kind} on {self.provider}{f' in {self.region}' if self.region else ''}"

    @property
    def unit(self) -> str:
        """What it counts."""
        return "accelerators" if self.accelerators is not None else "vCPUs"

    @property
    def limit(self) -> float:
        """How many units may be used at once."""
        limit = self.accelerators if self.accelerators is not None else self.vcpus
        if limit is None:
            raise ValueError("a quota counts accelerators or vCPUs")
        return float(limit)
