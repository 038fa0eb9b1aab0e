"""The providers that gpuplan knows: `data/providers.csv`, one row per provider.

A row registers a provider for job files, forms, Slack, tools for agents and exports. The prices of a cloud come from the
package `providers/NAME`.
"""

from dataclasses import dataclass
from functools import cache

from gpuplan.catalog.model.data_tables import data_table


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderName:
    """The name of a provider in documents, its label in forms, its full name in exports, and accepted aliases."""

    name: str
    label: str
    full_name: str
    is_cloud: bool
    aliases: tuple[str, ...]


@cache
def provider_names() -> dict[str, ProviderName]:
    """Every provider by name, in the order of the table; owned machines are the last."""
    return {
        row["name"]: ProviderName(
            name=row["name"],
            label=row["label"],
            full_name=row["full_name"],
            is_cloud=row["kind"] == "cloud",
            aliases=tuple(row["aliases"].split()),
        )
        for row in data_table("providers.csv")
    }


def cloud_full_names() -> dict[str, str]:
    """The full name of every cloud, by name."""
    return {name: row.full_name for name, row in provider_names().items() if row.is_cloud}
