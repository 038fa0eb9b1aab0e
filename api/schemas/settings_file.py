"""Configuration outside a job: the environment (locations) and the settings file (assumptions).

The environment names a database, an inventory and a settings file; the settings file changes the planner's
assumptions. Unknown keys are refused by name, so that a misspelt assumption is never ignored.
"""

import os
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from gpuplan.api.schemas.channel import ChannelDocument
from gpuplan.api.schemas.discounts_and_credits import CreditDocument, DiscountDocument, SpendCommitmentDocument
from gpuplan.api.schemas.own_rates import MOST_LISTS, RatesDocument
from gpuplan.api.schemas.quota import MOST_QUOTAS, QuotaDocument, quotas_of
from gpuplan.api.security.secret_files import secret
from gpuplan.api.security.web_addresses import is_web_address
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.model.provider_names import provider_names
from gpuplan.catalog.parsing.document_fields import Document, read_as
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.parsing.structured_text import read_document
from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.catalog.store.retention import RetentionPolicy
from gpuplan.planner.model.settings import ExistingCommitment, PlannerSettings
from gpuplan.providers.cloud_endpoints import RestAccount, Sources

_DEFAULT = RetentionPolicy()
#: A century in days; null keeps records forever.
Days = Annotated[int, Field(ge=1, le=36_525, strict=True)]
#: Twice a document's limit (`gpuplan.catalog.parsing.structured_text`), so that the parser can refuse a larger one.
MOST_BYTES_READ = 2 * 1024 * 1024
#: Less than a hundredth is a typing error rather than an assumption.
Share = Annotated[float, Field(ge=0.01, le=1, allow_inf_nan=False, strict=True)]
#: More than a month lost per event is a typing error rather than an assumption.
Hours = Annotated[float, Field(ge=0, le=720, allow_inf_nan=False, strict=True)]
#: Most discounts: every one is matched with every offer once per snapshot; no contract has more lines.
_MOST_DISCOUNTS = 500
#: Most existing savings plans; every one is matched with every rate.
_MOST_PLANS = 20


class RetentionDocument(Document):
    """Whole days; null keeps records forever; a missing key has its default.

    Every snapshot is kept for `every_snapshot_days`, then one per week for `weekly_snapshot_days`. Plans without a
    reported run or a watch, and answers of long runs, are kept for `plans_days`; the audit log for `audit_days`.
    """

    every_snapshot_days: Days | None = _DEFAULT.every_snapshot_days
    weekly_snapshot_days: Days | None = _DEFAULT.weekly_snapshot_days
    plans_days: Days | None = _DEFAULT.plans_days
    audit_days: Days | None = _DEFAULT.audit_days

    @model_validator(mode="after")
    def _weekly_is_the_longer(self) -> "RetentionDocument":
        every, weekly = self.every_snapshot_days, self.weekly_snapshot_days
        if every is not None and weekly is not None and weekly < every:
            raise ValueError(
                f"weekly_snapshot_days {weekly} is less than every_snapshot_days {every}; "
                "give at least as many, or null to keep forever"
            )
        return self

    def policy(self) -> RetentionPolicy:
        """The store's retention policy."""
        return RetentionPolicy(**self.model_dump())


class Environment(BaseModel):
    """Locations of the database, the owned machines and their calibration, the settings and the clouds; all optional.

    Missing values are read from the environment. pydantic-settings is not used: it would load asyncio and a
    command-line parser with every command.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    database_url: str | None = None
    inventory: Path | None = None
    calibration: Path | None = None
    settings: Path | None = None
    aws_spot_advisor_url: str | None = None
    aws_price_files_url: str | None = None
    gcp_compute_endpoint: str | None = None
    gcp_billing_endpoint: str | None = None
    gcp_tpu_endpoint: str | None = None
    gcp_quotas_endpoint: str | None = None
    gcp_project: str | None = None
    gcp_api_key: SecretStr | None = None
    azure_retail_endpoint: str | None = None
    azure_arm_endpoint: str | None = None
    azure_subscription_id: str | None = Field(default=None, validation_alias="AZURE_SUBSCRIPTION_ID")
    ecb_rates_url: str | None = None
    oci_shapes_url: str | None = None
    anonymous: str | None = None
    live: str | None = None
    refresh_cron: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_variables(cls, given: JsonObject) -> JsonObject:
        """Read environment variables. A secret may be in a file named by the variable with `_FILE`; empty means unset."""
        variables = {name: str(field.validation_alias or _variable(name)) for name, field in cls.model_fields.items()}
        given = {name: text for name, variable in variables.items() if (text := os.environ.get(variable))} | given
        read = {name: secret(_variable(name)) for name in ("database_url", "gcp_api_key") if not given.get(name)}
        return given | {name: value for name, value in read.items() if value is not None}

    def sources(self) -> Sources:
        """Addresses and credentials of the clouds; defaults are the clouds' own.

        Raises `UnusableInput` naming every variable that is not a web address, or not yes or no.
        """
        given = {field.name: getattr(self, field.name, None) for field in fields(Sources)}
        values = {name: value.strip() for name, value in given.items() if isinstance(value, str) and value.strip()}
        faults = [_no_address(name) for name, text in values.items() if _is_address(name) and not is_web_address(text)]
        wish = values.pop("anonymous", "no").lower()
        if wish not in _YES_NO:
            faults.append(_neither("anonymous"))
        if faults:
            raise UnusableInput(*faults)
        key = None if self.gcp_api_key is None else self.gcp_api_key.get_secret_value()
        return Sources(anonymous=_YES_NO[wish], gcp_api_key=key, rest=_rest_accounts(), **values)  # type: ignore[arg-type]

    def asks_live(self) -> bool:
        """Whether plans ask the clouds about capacity unless told not to. Raises `UnusableInput`."""
        wish = (self.live or "no").strip().lower()
        if wish not in _YES_NO:
            raise UnusableInput(_neither("live"))
        return _YES_NO[wish]


def _neither(name: str) -> Fault:
    return Fault((_variable(name),), f"is neither yes nor no; accepted: {', '.join(_YES_NO)}")


def _rest_accounts() -> tuple[RestAccount, ...]:
    """The providers with one REST API: endpoints of `GPUPLAN_NAME_ENDPOINT`, keys of their own variables or files."""
    return tuple(
        RestAccount(
            provider=name,
            endpoint=os.environ.get(_variable(f"{name}_endpoint"), "").strip() or row.endpoint,
            key_variable=row.key_variable,
            key=secret(row.key_variable) if row.key_variable else None,
        )
        for name, row in provider_names().items()
        if row.endpoint
    )


#: Accepted values of `GPUPLAN_ANONYMOUS` and `GPUPLAN_LIVE`.
_YES_NO = {"1": True, "yes": True, "true": True, "0": False, "no": False, "false": False}


def _is_address(name: str) -> bool:
    return name.endswith(("_url", "_endpoint"))


def _no_address(name: str) -> Fault:
    """The fault of an invalid address, without the address: it may contain a password."""
    return Fault((_variable(name),), "is not a web address; accepted: https://host/path, or http:// for a local server")


def _variable(name: str) -> str:
    return f"GPUPLAN_{name.upper()}"


class ExistingNodes(Document):
    """An existing commitment to nodes of one type in one region."""

    provider: str
    region: str
    instance_type: str
    price_kind: str
    nodes: Annotated[int, Field(ge=1, le=100_000)]

    @field_validator("price_kind")
    @classmethod
    def _has_a_term(cls, name: str) -> str:
        kinds = [kind.name for kind in price_kinds().values() if kind.term_hours]
        if name not in kinds:
            raise ValueError(f"{name[:80]!r} is not a price kind with a term; accepted: {', '.join(kinds)}")
        return name


class SettingsFile(Document):
    """The settings file: assumptions of `PlannerSettings`, `channels` of watches, `quotas`, own `rates`, and
    `retention`.

    A missing key has its default. Existing savings plans are `held_spend`: the plan of a single job uses the whole
    commitment, because other jobs of that hour are unknown; a forecast shares it among its jobs.
    """

    goodput: Share | None = PlannerSettings().goodput
    setup_hours: Hours | None = PlannerSettings().setup_hours
    restart_hours: Hours = PlannerSettings().restart_hours
    spot_wait_hours: Hours | None = PlannerSettings().spot_wait_hours
    node_loss_exponent: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False, strict=True)] = (
        PlannerSettings().node_loss_exponent
    )
    # 1e-5 GB/s is the speed of a floppy disk.
    checkpoint_gbs: Annotated[float, Field(ge=1e-5, le=10_000, allow_inf_nan=False, strict=True)] = (
        PlannerSettings().checkpoint_gbs
    )
    default_interruptions_per_hour: Annotated[float, Field(ge=0, le=60, allow_inf_nan=False, strict=True)] = (
        PlannerSettings().default_interruptions_per_hour
    )
    held: tuple[ExistingNodes, ...] = ()
    held_spend: tuple[SpendCommitmentDocument, ...] = Field(default=(), max_length=_MOST_PLANS)
    discounts: tuple[DiscountDocument, ...] = Field(default=(), max_length=_MOST_DISCOUNTS)
    credits: tuple[CreditDocument, ...] = Field(default=(), max_length=_MOST_DISCOUNTS)
    cost_basis: Literal["full", "marginal"] = "full"
    learning: Literal["on", "off"] = "on"
    prices: Literal["expected", "as-observed"] = "expected"
    # From a modem's 56 kbit/s to the fastest links between data centres.
    move_gbs: Annotated[float, Field(ge=7e-6, le=10_000, allow_inf_nan=False, strict=True)] = PlannerSettings().move_gbs
    least_saving_of_a_move_percent: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False, strict=True)] = (
        PlannerSettings().least_saving_of_a_move_percent
    )
    checkpoints_kept: Annotated[int, Field(ge=1, le=10_000)] = PlannerSettings().checkpoints_kept
    channels: tuple[ChannelDocument, ...] = ()
    quotas: Annotated[tuple[QuotaDocument, ...], Field(max_length=MOST_QUOTAS)] = ()
    rates: Annotated[tuple[RatesDocument, ...], Field(max_length=MOST_LISTS)] = ()
    retention: RetentionDocument = RetentionDocument()

    @field_validator("channels", "rates")
    @classmethod
    def _refuse_duplicates[D: (ChannelDocument, RatesDocument)](cls, named: tuple[D, ...]) -> tuple[D, ...]:
        names = [entry.name for entry in named]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{', '.join(twice)}: used more than once; give every entry a unique name")
        return named


def read_file(path: Path, *, field: str, accepted: str = "") -> bytes:
    """The bytes of a file that the user named at `field`.

    Stops reading beyond the parser's size limit, so that a device or a log file named by mistake does not fill the
    memory. Raises `UnusableInput` at that field if it cannot be read; the message ends with what is `accepted`, if stated.
    """
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES_READ)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UnusableInput.at(
            field, message=f"cannot read {str(path)!r}: {reason}{accepted and '; ' + accepted}"
        ) from error


def planner_settings(path: Path | None) -> PlannerSettings:
    """The planner's assumptions from the settings file, or its defaults without one.

    Raises `UnusableInput` naming every key that is unknown or out of range.
    """
    return as_assumed(settings_file(path))


def as_assumed(chosen: SettingsFile) -> PlannerSettings:
    """The planner's assumptions of a settings file that has been read."""
    values = {field.name: getattr(chosen, field.name) for field in fields(PlannerSettings)}
    converted = {
        "held": tuple(ExistingCommitment(**commitment.model_dump()) for commitment in chosen.held),
        "held_spend": tuple(commitment.held() for commitment in chosen.held_spend),
        "discounts": tuple(discount.discount() for discount in chosen.discounts),
        "credits": tuple(credit.credit() for credit in chosen.credits),
        "quotas": quotas_of(chosen.quotas),
    }
    return PlannerSettings(**values | converted)


def settings_file(path: Path | None) -> SettingsFile:
    """The settings file, or all defaults without one.

    Raises `UnusableInput` naming every key that is unknown or out of range.
    """
    if path is None:
        return SettingsFile()
    document = read_document(read_file(path, field="settings"), name=str(path))
    try:
        return read_as(SettingsFile, document)
    except UnusableInput as error:
        raise error.under("settings") from None
