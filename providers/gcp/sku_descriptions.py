"""Parse SKU descriptions: the price kind and the component.

The description is the only key that joins a price to a machine. The category's usage type helps, but B200 and preemptible
TPUs are "OnDemand" in it, and so is everything of the Dynamic Workload Scheduler. Components are compared as complete sets
of words: "Tesla A100" differs from "Tesla A100 80GB", "H100 80GB Mega" equals "H100 Mega 80GB".

A page of the Cloud Billing Catalog, as its REST interface writes it; unknown keys are ignored.

https://cloud.google.com/billing/docs/reference/rest/v1/services.skus/list
"""

import re
from functools import lru_cache

from pydantic import AwareDatetime, BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class _Document(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, frozen=True)


class Category(_Document):
    """What sort of thing a SKU prices."""

    resource_family: str = ""
    resource_group: str = ""
    usage_type: str = ""


class UnitPrice(_Document):
    """An amount of money: whole units and nano-units."""

    currency_code: str = ""
    units: int = 0
    nanos: int = 0


class TieredRate(_Document):
    """The price from an amount of use on."""

    start_usage_amount: float = 0.0
    unit_price: UnitPrice = UnitPrice()


class PricingExpression(_Document):
    """The unit and its rates."""

    usage_unit: str = ""
    tiered_rates: tuple[TieredRate, ...] = ()


class PricingInfo(_Document):
    """A price, and since when it holds."""

    effective_time: AwareDatetime | None = None
    pricing_expression: PricingExpression = PricingExpression()


class GeoTaxonomy(_Document):
    """The regions that a multi-region stands for."""

    regions: tuple[str, ...] = ()


class Sku(_Document):
    """One priced thing."""

    sku_id: str = ""
    description: str = ""
    category: Category = Category()
    service_regions: tuple[str, ...] = ()
    pricing_info: tuple[PricingInfo, ...] = ()
    geo_taxonomy: GeoTaxonomy = GeoTaxonomy()


class SkuPage(_Document):
    """Some SKUs, and the token of the next page, empty after the last."""

    skus: tuple[Sku, ...] = ()
    next_page_token: str = ""


#: Rates that are not the price of a machine: licences, surcharges, idle or dedicated hosts.
_NOT_PLAIN = re.compile(
    r"sole tenancy|custom|reserved|premium|extended|upgrade|suspended|virtual workstation|\bvws\b|windows|licens",
    re.IGNORECASE,
)
_CALENDAR = re.compile(r"calendar mode", re.IGNORECASE)
_FLEX_START = re.compile(r"\bdws defined duration\b|\bflex[ -]?start\b", re.IGNORECASE)
#: The Dynamic Workload Scheduler; its other products have no known price kind.
_DWS = re.compile(r"\bdws\b", re.IGNORECASE)
_SPOT = re.compile(r"\bspot\b|\bpreemptible\b", re.IGNORECASE)
_COMMITMENT = re.compile(r"^commitment\b|\bcommitment v\d", re.IGNORECASE)
_YEARS = re.compile(r"\bfor (\d) years?\b", re.IGNORECASE)
_COMMITTED = {"1": "committed_1y", "3": "committed_3y", "Commit1Yr": "committed_1y", "Commit3Yr": "committed_3y"}
_BY_USAGE = {"OnDemand": "on_demand", "Preemptible": "spot", "": "on_demand"}

#: Words on how or where a component is sold, in the order in which they are removed.
_AROUND = (
    re.compile(r"^commitment(?: v\d+)?:?\s*", re.IGNORECASE),
    re.compile(r"\bfor \d years?\b.*$", re.IGNORECASE),
    re.compile(r"\bin calendar mode\b", re.IGNORECASE),
    re.compile(r"\battached to .*?\bvms?\b", re.IGNORECASE),
    re.compile(r"\b(?:running )?in\b.*$", re.IGNORECASE),
    re.compile(
        r"\bdws\b|\bdefined duration\b|\bflex[ -]?start\b|\bcalendar mode\b|\bspot\b|\bpreemptible\b|\breserved\b",
        re.IGNORECASE,
    ),
)
_TPU = re.compile(r"\btpu[ -]?v?(\d+[a-z]*)(?:-\d+)?\b|\bv(\d+[a-z]*)[ -]tpu\b", re.IGNORECASE)
#: Older TPUs end in their location without an "in": "Tpu-v4 Pod Accelerator USA".
_ACCELERATOR = "accelerator"
_POD = frozenset(("pod",))
_CONTINENTS = frozenset(("usa", "us", "americas", "europe", "emea", "asia", "apac"))
#: Words that do not distinguish components.
_FILLERS = frozenset(
    ("nvidia", "tesla", "gpu", "gpus", "instance", "running", "usage", "hour", "hours", "chip", "chips")
)
_SAME = {"cpu": "core", "cores": "core", "vcpu": "core", "memory": "ram"}
_SSD_LEAST = frozenset(("local", "ssd"))
_SSD_WORDS = frozenset(("local", "ssd", "backed", "storage"))
LOCAL_SSD = "local ssd"


@lru_cache(maxsize=65536)
def price_kind(description: str, usage_type: str) -> str | None:
    """The price kind of a SKU, None if it is not the price of a machine (a licence, a monthly term)."""
    if usage_type not in _BY_USAGE and usage_type not in _COMMITTED:
        return None
    committed = bool(_COMMITMENT.search(description)) or usage_type in _COMMITTED
    calendar = not committed and bool(_CALENDAR.search(description))
    plain = _CALENDAR.sub("", description).replace("Reserved ", "") if calendar else description
    if _NOT_PLAIN.search(plain):
        return None
    if committed:
        years = _YEARS.search(description)
        return _COMMITTED.get(years[1] if years else usage_type)
    if calendar:
        return "calendar"
    if _FLEX_START.search(description):
        return "flex_start"
    if _DWS.search(description):
        return None
    return "spot" if _SPOT.search(description) else _BY_USAGE[usage_type]


@lru_cache(maxsize=65536)
def component(description: str) -> str:
    """The component's words, sorted: "A2 Instance Core running in Americas" is `a2 core`.

    Omits vendors and filler words; TPUs become `tpu v5e` in any spelling, local SSD becomes `LOCAL_SSD`.
    """
    text = description
    for around in _AROUND:
        text = around.sub(" ", text)
    tpu = _TPU.search(text)
    if tpu:
        version = (tpu[1] or tpu[2]).lower()
        name = f"tpu {version}" if version == "7x" else f"tpu v{version}"
        rest = _words(_TPU.sub(" ", text)) - _CONTINENTS
        if _ACCELERATOR in rest:
            rest &= _POD
        return " ".join(sorted({*name.split(), *rest}))
    words = _words(text)
    if _SSD_LEAST.issubset(words) and words.issubset(_SSD_WORDS):
        return LOCAL_SSD
    return " ".join(sorted(words))


def _words(text: str) -> frozenset[str]:
    words = (re.sub(r"[^a-z0-9]", "", word) for word in re.split(r"[\s()/,:-]+", text.lower()))
    return frozenset(_SAME.get(word, word) for word in words if word and word not in _FILLERS)
