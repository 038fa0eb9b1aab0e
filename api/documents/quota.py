"""A quota as users write it: how many accelerators or vCPUs a provider lets them have at once."""

from typing import Annotated

from api.documents.words import PROVIDER_ALIASES, PROVIDERS
from catalog.accelerators import accelerators
from catalog.document_fields import Document, Label, choice, quantity
from catalog.errors import UnusableInput
from planner.portfolio.request import Quota

MOST_QUOTAS = 64


def quota_count(value: object) -> float:
    """A whole number of accelerators or vCPUs, 0 included: a region that is closed."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e7 or value != int(value):
        raise ValueError(f"{value!r} is not accepted; write a whole number from 0 to 10 000 000"[:200])
    return float(value)


Count = Annotated[float, quantity(quota_count, "how many at once; 0 closes it", 64)]


class QuotaDocument(Document):
    """At most so many accelerators or vCPUs at once, by provider and, if given, region and kind of machine."""

    provider: Annotated[str, choice(PROVIDERS, PROVIDER_ALIASES)]
    region: Annotated[str, Label] | None = None
    family: Annotated[str, Label] | None = None
    accelerator: Annotated[str, Label] | None = None
    instance_type: Annotated[str, Label] | None = None
    accelerators: Count | None = None
    vcpus: Count | None = None

    def quota(self) -> Quota:
        """As the planner takes it. Raises `UnusableInput` where too much or too little is said."""
        kinds = [name for name in ("family", "accelerator", "instance_type") if getattr(self, name) is not None]
        if len(kinds) > 1:
            raise UnusableInput.at(kinds[1], message=f"stands beside {kinds[0]}; give one of the two")
        if (self.accelerators is None) == (self.vcpus is None):
            raise UnusableInput.at("accelerators", message="give either accelerators or vcpus: what the quota counts")
        if self.accelerator is not None and self.accelerator not in accelerators():
            message = f"{self.accelerator!r} is not in the catalogue; `gpuplan accelerators` lists the names"
            raise UnusableInput.at("accelerator", message=message)
        return Quota(
            provider=self.provider,
            region=self.region or "",
            family=self.family or "",
            accelerator=self.accelerator or "",
            instance_type=self.instance_type or "",
            accelerators=self.accelerators,
            vcpus=self.vcpus,
        )


def quotas_of(documents: tuple[QuotaDocument, ...]) -> tuple[Quota, ...]:
    """Quotas as the planner takes them; raises `UnusableInput` under `quotas` for those that say too much or little."""
    found = []
    for number, each in enumerate(documents):
        try:
            found.append(each.quota())
        except UnusableInput as error:
            raise error.under("quotas", number) from None
    return tuple(found)
