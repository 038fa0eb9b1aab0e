"""What the user sets outside a job: the environment (where things are) and the settings file (what to assume).

The environment names a database, an inventory and a settings file; the settings file changes the planner's
assumptions. A key that nobody knows is refused by name, so that a misspelt assumption is never ignored.
"""

import os
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from api.documents.channel import ChannelDocument
from api.documents.negotiated import CreditDocument, DiscountDocument, HeldSpendDocument
from api.documents.quota import MOST_QUOTAS, QuotaDocument
from api.documents.retention import RetentionDocument
from api.secret_files import secret
from api.web_address import is_web_address
from catalog.document_fields import Document, read_as
from catalog.documents import read_document
from catalog.errors import Fault, UnusableInput
from catalog.price_kinds import price_kinds
from planner.settings import HeldCommitment, PlannerSettings
from providers.sources import Sources

#: Twice what a document may have (`catalog.documents`): enough for the parser to say that it is too large.
MOST_BYTES_READ = 2 * 1024 * 1024

#: Below a hundredth a run hardly trains at all, which is a slip of the pen rather than an assumption.
Share = Annotated[float, Field(ge=0.01, le=1, allow_inf_nan=False, strict=True)]
#: More than a month lost per event is a mistake in the file, not an assumption.
Hours = Annotated[float, Field(ge=0, le=720, allow_inf_nan=False, strict=True)]


#: Each discount is held against every offer once per snapshot; no contract has more lines than this.
_MOST_DISCOUNTS = 500
#: Held savings plans, each of which is held against every rate.
_MOST_PLANS = 20


class Environment(BaseModel):
    """Where the database, the own machines, what was measured on them, the settings and the clouds are; all may be
    left out. What is not given is what the environment says, read here: pydantic-settings would load asyncio and a
    parser of command lines with each command.
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
    gcp_project: str | None = None
    gcp_api_key: SecretStr | None = None
    azure_retail_endpoint: str | None = None
    azure_arm_endpoint: str | None = None
    azure_subscription_id: str | None = Field(default=None, validation_alias="AZURE_SUBSCRIPTION_ID")
    anonymous: str | None = None
    refresh_cron: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_variables(cls, given: dict[str, Any]) -> dict[str, Any]:
        """What is a secret, or holds one, may stand in a file that the variable with `_FILE` names; empty is unset."""
        variables = {name: str(field.validation_alias or _variable(name)) for name, field in cls.model_fields.items()}
        given = {name: text for name, variable in variables.items() if (text := os.environ.get(variable))} | given
        read = {name: secret(_variable(name)) for name in ("database_url", "gcp_api_key") if not given.get(name)}
        return given | {name: value for name, value in read.items() if value is not None}

    def sources(self) -> Sources:
        """Where the clouds are reached and as whom; what is not set is the clouds' own.

        Raises `UnusableInput` naming every variable that is no web address or no yes or no.
        """
        given = {each.name: getattr(self, each.name, None) for each in fields(Sources)}
        values = {name: value.strip() for name, value in given.items() if isinstance(value, str) and value.strip()}
        faults = [_no_address(name) for name, text in values.items() if _is_address(name) and not is_web_address(text)]
        wish = values.pop("anonymous", "no").lower()
        if wish not in _YES_NO:
            faults.append(Fault((_variable("anonymous"),), f"is no yes or no; accepted: {', '.join(_YES_NO)}"))
        if faults:
            raise UnusableInput(*faults)
        key = None if self.gcp_api_key is None else self.gcp_api_key.get_secret_value()
        return Sources(anonymous=_YES_NO[wish], gcp_api_key=key, **values)  # type: ignore[arg-type]


#: What `GPUPLAN_ANONYMOUS` may say.
_YES_NO = {"1": True, "yes": True, "true": True, "0": False, "no": False, "false": False}


def _is_address(name: str) -> bool:
    return name.endswith(("_url", "_endpoint"))


def _no_address(name: str) -> Fault:
    """The address itself is not repeated: it may hold a password."""
    return Fault((_variable(name),), "is no web address; accepted: https://host/path, or http:// for a local server")


def _variable(name: str) -> str:
    return f"GPUPLAN_{name.upper()}"


class HeldNodes(Document):
    """A commitment that is already paid for: so many nodes of one type in one region."""

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
            raise ValueError(f"{name[:80]!r} is no price kind with a term; accepted: {', '.join(kinds)}")
        return name


class SettingsFile(Document):
    """The settings file: the assumptions of `PlannerSettings` key by key, the `channels` that watches tell,
    the `quotas` of a portfolio, and how long things are kept (`retention`).

    A key left out keeps its default. Savings plans of so many dollars per hour are `held_spend`: a plan of one job counts
    each whole, since it cannot know what else runs in that hour; a forecast shares it among its jobs.
    """

    goodput: Share = PlannerSettings().goodput
    setup_hours: Hours = PlannerSettings().setup_hours
    restart_hours: Hours = PlannerSettings().restart_hours
    spot_wait_hours: Hours = PlannerSettings().spot_wait_hours
    # A floppy disk writes a hundred thousandth of a GB each second.
    checkpoint_gbs: Annotated[float, Field(ge=1e-5, le=10_000, allow_inf_nan=False, strict=True)] = (
        PlannerSettings().checkpoint_gbs
    )
    default_interruptions_per_hour: Annotated[float, Field(ge=0, le=60, allow_inf_nan=False, strict=True)] = (
        PlannerSettings().default_interruptions_per_hour
    )
    held: tuple[HeldNodes, ...] = ()
    held_spend: tuple[HeldSpendDocument, ...] = Field(default=(), max_length=_MOST_PLANS)
    discounts: tuple[DiscountDocument, ...] = Field(default=(), max_length=_MOST_DISCOUNTS)
    credits: tuple[CreditDocument, ...] = Field(default=(), max_length=_MOST_DISCOUNTS)
    cost_basis: Literal["full", "marginal"] = "full"
    learning: Literal["on", "off"] = "on"
    # From a modem's 56 kbit/s to the fastest links between data centres.
    move_gbs: Annotated[float, Field(ge=7e-6, le=10_000, allow_inf_nan=False, strict=True)] = PlannerSettings().move_gbs
    least_saving_of_a_move_percent: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False, strict=True)] = (
        PlannerSettings().least_saving_of_a_move_percent
    )
    checkpoints_kept: Annotated[int, Field(ge=1, le=10_000)] = PlannerSettings().checkpoints_kept
    channels: tuple[ChannelDocument, ...] = ()
    quotas: Annotated[tuple[QuotaDocument, ...], Field(max_length=MOST_QUOTAS)] = ()
    retention: RetentionDocument = RetentionDocument()

    @field_validator("channels")
    @classmethod
    def _named_once(cls, channels: tuple[ChannelDocument, ...]) -> tuple[ChannelDocument, ...]:
        names = [each.name for each in channels]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{', '.join(twice)}: named more than once; give every channel a name of its own")
        return channels


def read_file(path: Path, *, field: str) -> bytes:
    """The bytes of a file that the user named at `field`.

    Reads no more than shows the parser that a document is too large, so that a device or a log file named
    by mistake does not fill the memory. Raises `UnusableInput` at that field if it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES_READ)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UnusableInput.at(field, message=f"cannot read {str(path)!r}: {reason}") from error


def planner_settings(path: Path | None) -> PlannerSettings:
    """The planner's assumptions from the settings file, or its defaults without one.

    Raises `UnusableInput` naming every key that is unknown or out of range.
    """
    return as_assumed(settings_file(path))


def as_assumed(chosen: SettingsFile) -> PlannerSettings:
    """The planner's assumptions of a settings file that has been read."""
    values = {field.name: getattr(chosen, field.name) for field in fields(PlannerSettings)}
    own = {
        "held": tuple(HeldCommitment(**each.model_dump()) for each in chosen.held),
        "held_spend": tuple(each.held() for each in chosen.held_spend),
        "discounts": tuple(each.discount() for each in chosen.discounts),
        "credits": tuple(each.credit() for each in chosen.credits),
    }
    return PlannerSettings(**values | own)


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
