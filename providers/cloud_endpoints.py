"""Endpoints and credentials of the clouds, as the environment sets them in addition to the SDKs' own variables."""

from dataclasses import dataclass, field

from gpuplan.catalog.model.provider_names import provider_names


@dataclass(frozen=True, slots=True, kw_only=True)
class RestAccount:
    """The endpoint of a provider's REST API and the account's key, which `key_variable` holds."""

    provider: str
    endpoint: str
    key_variable: str = ""
    key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Endpoints and accounts; the defaults are the clouds' own.

    None for an endpoint means the SDK's default. `anonymous` uses no GCP or Azure credentials and allows plain http to them
    (a local server). `rest` has the providers with one REST API and one key that are set up. `paced` False disables rate limiting, for a server without limits.
    """

    aws_spot_advisor_url: str = "https://spot-bid-advisor.s3.amazonaws.com/spot-advisor-data.json"
    aws_price_files_url: str = "https://pricing.us-east-1.amazonaws.com"
    gcp_compute_endpoint: str | None = None
    gcp_billing_endpoint: str | None = None
    gcp_tpu_endpoint: str | None = None
    gcp_quotas_endpoint: str | None = None
    gcp_project: str | None = None
    gcp_api_key: str | None = field(default=None, repr=False)
    azure_retail_endpoint: str = "https://prices.azure.com"
    azure_arm_endpoint: str | None = None
    azure_subscription_id: str | None = None
    ecb_rates_url: str = "https://www.ecb.europa.eu/stats/eurofxref/eurofxref-daily.xml"
    oci_shapes_url: str = "https://www.oracle.com/a/ocom/docs/cloudestimator2/data/shapes.json"
    rest: tuple[RestAccount, ...] = ()
    anonymous: bool = False
    paced: bool = True


def rest_account(sources: Sources, name: str) -> RestAccount:
    """The account at a provider: that of `sources`, else its public endpoint without a key."""
    row = provider_names()[name]
    public = RestAccount(provider=name, endpoint=row.endpoint, key_variable=row.key_variable)
    return next((account for account in sources.rest if account.provider == name), public)
