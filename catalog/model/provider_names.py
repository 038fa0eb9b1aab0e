"""The providers that gpuplan knows: `data/providers.csv`, one row per provider, and what kind of seller each is.

A row registers a provider for job files, forms, Slack, tools for agents and exports. The prices of a provider that is
refreshed come from the package `providers/NAME`; those of the others are embedded.
"""

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

from gpuplan.catalog.model.data_tables import data_table

#: The kinds of sellers. A marketplace rents machines of third parties, which may fail or leave at any time.
CLOUD, NEOCLOUD, MARKETPLACE = "cloud", "neocloud", "marketplace"
PROVIDER_KINDS = {
    CLOUD: "general clouds",
    NEOCLOUD: "clouds that sell mainly accelerators",
    MARKETPLACE: "marketplaces of third parties' machines",
}
_OWNED = "owned"
#: The names of lists of the user's own rates (`rates` of the settings file), each a provider that the table lacks.
OWN_RATES = "own-[a-z0-9][a-z0-9-]{0,29}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderName:
    """The name of a provider in documents, its label in forms, its full name in exports, and accepted aliases.

    `kind` is one of `PROVIDER_KINDS`, or owned; `is_refreshed` says whether its current prices can be read.
    Providers with one REST API have its `endpoint`, and `key_variable`, the environment variable of the account's key, if
    there is one. Those that show their prices to anyone have `needs_key` False.
    """

    name: str
    label: str
    full_name: str
    kind: str
    is_refreshed: bool
    endpoint: str
    key_variable: str
    needs_key: bool
    aliases: tuple[str, ...]

    @property
    def is_rented(self) -> bool:
        """Whether it rents machines to anyone; False for owned machines."""
        return self.kind != _OWNED


@cache
def provider_names() -> dict[str, ProviderName]:
    """Every provider by name, in the order of the table; owned machines are the last."""
    return {
        row["name"]: ProviderName(
            name=row["name"],
            label=row["label"],
            full_name=row["full_name"],
            kind=row["kind"],
            is_refreshed=row["refreshed"] == "yes",
            endpoint=row["endpoint"],
            key_variable=row["key_variable"],
            needs_key=row["key_needed"] == "yes",
            aliases=tuple(row["aliases"].split()),
        )
        for row in data_table("providers.csv")
    }


def is_own_rates(provider: str) -> bool:
    """Whether this is a list of the user's own rates."""
    return re.fullmatch(OWN_RATES, provider) is not None


def rented_full_names() -> dict[str, str]:
    """The full name of every provider that rents machines, by name."""
    return {name: row.full_name for name, row in provider_names().items() if row.is_rented}


def provider_kind(provider: str, instance_type: str) -> str | None:
    """The kind of seller behind a machine: that of `data/markets.csv` where a provider has several, else the provider's.

    None for owned machines and for the user's own rates, which no rule about sellers concerns.
    """
    for row in _markets():
        if row["provider"] == provider and fnmatchcase(instance_type, row["instance_type"]):
            return row["kind"]
    known = provider_names().get(provider)
    return known.kind if known is not None and known.is_rented else None


@cache
def _markets() -> list[dict[str, str]]:
    return data_table("markets.csv")
