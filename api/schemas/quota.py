"""A quota: the most accelerators or vCPUs that a provider allows at once."""

from datetime import date
from typing import Annotated

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.parsing.document_fields import Document, Label, Reads, choice, quantity
from gpuplan.catalog.parsing.place_names import ProviderField
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.quota import ON_DEMAND, SPOT, Quota

MOST_QUOTAS = 64


def quota_count(value: object) -> float:
    """A whole number of accelerators or vCPUs; 0 closes the region."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e7 or value != int(value):
        raise ValueError(f"{value!r} is not accepted; write a whole number from 0 to 10 000 000"[:200])
    return float(value)


def _day(value: object) -> str:
    """A day as ISO 8601 writes it; YAML reads an unquoted one as a date."""
    try:
        return date.fromisoformat(str(value)).isoformat()
    except ValueError:
        raise ValueError(f"{str(value)[:40]!r} is no day; write one as 2026-11-20") from None


Count = Annotated[float, quantity(quota_count, "most at once; 0 closes the region", 64)]


class QuotaDocument(Document):
    """The most accelerators or vCPUs at once, by provider and optionally region, kind of machine and kind of price.

    `price_kind` is spot, or on_demand for all that is not interruptible; `code` is the provider's name of the quota, and
    `read_on` the day on which the provider stated it.
    """

    provider: Annotated[str, ProviderField]
    region: Annotated[str, Label] | None = None
    family: Annotated[str, Label] | None = None
    accelerator: Annotated[str, Label] | None = None
    instance_type: Annotated[str, Label] | None = None
    price_kind: Annotated[str, choice((SPOT, ON_DEMAND))] | None = None
    code: Annotated[str, Label] | None = None
    read_on: Annotated[str, Reads(_day, {"type": "string", "format": "date"})] | None = None
    accelerators: Count | None = None
    vcpus: Count | None = None

    def quota(self) -> Quota:
        """The planner's quota. Raises `UnusableInput` for missing or contradicting fields."""
        kinds = [name for name in ("family", "accelerator", "instance_type") if getattr(self, name) is not None]
        if len(kinds) > 1:
            raise UnusableInput.at(kinds[1], message=f"contradicts {kinds[0]}; give one of the two")
        if (self.accelerators is None) == (self.vcpus is None):
            raise UnusableInput.at(
                "accelerators", message="give either accelerators or vcpus, the unit that the quota counts"
            )
        if self.accelerator is not None and self.accelerator not in accelerators():
            message = f"{self.accelerator!r} is not in the catalogue; `gpuplan accelerators` lists the names"
            raise UnusableInput.at("accelerator", message=message)
        return Quota(
            provider=self.provider,
            region=self.region or "",
            family=self.family or "",
            accelerator=self.accelerator or "",
            instance_type=self.instance_type or "",
            price_kind=self.price_kind or "",
            code=self.code or "",
            read_on=self.read_on or "",
            accelerators=self.accelerators,
            vcpus=self.vcpus,
        )


def quotas_of(documents: tuple[QuotaDocument, ...]) -> tuple[Quota, ...]:
    """The planner's quotas; raises `UnusableInput` under `quotas` for missing or contradicting fields."""
    quotas = []
    for number, document in enumerate(documents):
        try:
            quotas.append(document.quota())
        except UnusableInput as error:
            raise error.under("quotas", number) from None
    return tuple(quotas)
