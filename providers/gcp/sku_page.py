"""A page of the Cloud Billing Catalog, as its REST interface writes it; unknown keys are ignored.

https://cloud.google.com/billing/docs/reference/rest/v1/services.skus/list
"""

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
