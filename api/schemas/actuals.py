"""The report on a run of a plan: measurements, read strictly and checked against the plan."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from pydantic import ConfigDict

from gpuplan.catalog.model.accelerators import find_accelerator
from gpuplan.catalog.parsing.accelerator_names import accelerator_text
from gpuplan.catalog.parsing.document_fields import Document, Label, Reads, YesNo, quantity, read_as, whole_number
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.parsing.quantities import count, gib, hours, shown
from gpuplan.catalog.runtime.errors import Fault, UnusableInput

#: The figures that a report may have.
FIGURES = ("hours", "throughput", "peak_memory_gib", "preemptions")
#: Upper limit of preemptions in one run, to catch typing errors.
MOST_PREEMPTIONS = 1_000_000
#: A figure that differs from its prediction by this factor needs confirmation, because it is probably a typing error.
ABSURD_RATIO = 100.0
#: Tolerance between hours x throughput and the work done: throughputs from dashboards are rounded.
ROUNDING = 0.9
#: Tolerance for a peak above the device's memory: tools round to a tenth of a GiB.
MEMORY_ROUNDING = 1.01

_THROUGHPUT = "write units per second as a number, `12000 tokens/s`, or {value: 12000, unit: tokens/s}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A throughput and its unit (empty: the plan's unit)."""

    value: float
    unit: str


def _throughput(value: object) -> Rate:
    """Units per second: a number, text with a unit, or a mapping as plans show it."""
    if isinstance(value, dict):
        if set(value) != {"value", "unit"} or not isinstance(value["unit"], str):
            raise ValueError(f"{shown(value)} is not accepted; {_THROUGHPUT}")
        return Rate(value=count(value["value"]), unit=value["unit"].strip())
    if isinstance(value, str) and len(parts := value.split(maxsplit=1)) == 2:
        return Rate(value=count(parts[0]), unit=parts[1].strip())
    return Rate(value=count(value), unit="")


def _share(value: object) -> float:
    """The share of the job's work that is done, above 0 and at most 1."""
    accepted = "write the share of the work done as 0.4 or 40%"
    percent = isinstance(value, str) and value.strip().endswith("%")
    try:
        share = count(value.strip().removesuffix("%") if isinstance(value, str) else value) / (100 if percent else 1)
    except ValueError:
        raise ValueError(f"{shown(value)} is not accepted; {accepted}") from None
    if share > 1:
        raise ValueError(f"{shown(value)} is more work than the job has; {accepted}")
    return share


Throughput = Annotated[
    Rate,
    Reads(
        _throughput,
        {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0},
                {"type": "string"},
                {
                    "type": "object",
                    "properties": {"value": {"type": "number"}, "unit": {"type": "string"}},
                    "required": ["value", "unit"],
                },
            ],
            "description": "units per second during training, in the plan's unit",
            "examples": [12000, "12000 tokens/s"],
        },
    ),
]
WallHours = Annotated[float, quantity(hours, "wall-clock hours since the start, waiting included", 31, "1d 7h")]
Accelerator = Annotated[str, Reads(accelerator_text, {"type": "string", "examples": ["H100-80GB-SXM"]})]


class ActualsDocument(Document):
    """What a run of a plan measured, finished or still running; at least one figure."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"hours": "31h", "throughput": "11800 tokens/s", "peak_memory_gib": "61 GiB", "preemptions": 1},
                {"running": True, "share_done": "40%", "hours": 12.5},
            ]
        }
    )

    hours: WallHours | None = None
    throughput: Throughput | None = None
    peak_memory_gib: Annotated[float, quantity(gib, "peak memory of one accelerator", 61.5, "61 GiB")] | None = None
    preemptions: Annotated[int, whole_number(0, MOST_PREEMPTIONS, "preemptions so far")] | None = None
    running: Annotated[bool, YesNo] = False
    share_done: (
        Annotated[float, quantity(_share, "share of the job's work done; 1 when finished", 0.4, "40%")] | None
    ) = None
    plan: Annotated[str, Label] | None = None
    accelerator: Accelerator | None = None
    confirm: Annotated[bool, YesNo] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The plan's figures that a report must agree with: machine, work, and predictions for the share done."""

    plan_id: str
    accelerator: str
    device_memory_gib: float
    unit: str
    units_total: float
    predicted: dict[str, float]


def read_actuals(document: JsonObject) -> ActualsDocument:
    """The report in `document`; raises `UnusableInput` with every fault that is visible without the plan."""
    report = read_as(ActualsDocument, document)
    faults = list(_consistency_faults(report))
    if faults:
        raise UnusableInput(*faults)
    return report


def share_done(report: ActualsDocument) -> float:
    """The share of the work that the figures cover."""
    return 1.0 if report.share_done is None else report.share_done


def _consistency_faults(report: ActualsDocument) -> Iterator[Fault]:
    if all(getattr(report, name) is None for name in FIGURES):
        yield Fault(("hours",), f"nothing was measured; give at least one of {', '.join(FIGURES)}")
    if report.running and report.share_done is None:
        yield Fault(("share_done",), "is missing, and required for a running job; write the share done as 40%")
    if report.running and report.share_done == 1:
        yield Fault(
            ("share_done",),
            "is the whole job, but running says that it still runs; leave out running, or give a smaller share",
        )


def check_against(report: ActualsDocument, planned: Planned) -> None:
    """Raise one `UnusableInput` with every reason why a report cannot belong to this plan."""
    # Sizes are compared only for figures of this plan that are possible at all.
    faults = list(_other_plan(report, planned)) or list(_impossible(report, planned))
    if not faults and not report.confirm:
        faults = list(_absurd(report, planned))
    if faults:
        raise UnusableInput(*faults)


def _other_plan(report: ActualsDocument, planned: Planned) -> Iterator[Fault]:
    if report.plan is not None and report.plan != planned.plan_id:
        yield Fault(
            ("plan",), f"{shown(report.plan)} is not the plan {planned.plan_id}; report every run under its own plan"
        )
    if report.accelerator is not None and find_accelerator(report.accelerator).name != planned.accelerator:
        message = (
            f"the plan is for {planned.accelerator}; report a run on another accelerator under a plan for that one"
        )
        yield Fault(("accelerator",), message)
    if report.throughput is not None and report.throughput.unit not in {"", planned.unit}:
        message = f"{shown(report.throughput.unit)} is not the unit of this plan; give the throughput in {planned.unit}"
        yield Fault(("throughput",), message)


def _impossible(report: ActualsDocument, planned: Planned) -> Iterator[Fault]:
    """Figures that no run can have."""
    rate, work = report.throughput, share_done(report) * planned.units_total
    if report.hours is not None and rate is not None and report.hours * 3600 * rate.value < ROUNDING * work:
        units = planned.unit.removesuffix("/s")
        message = (
            f"{rate.value:g} {planned.unit} for {report.hours:g} h are {report.hours * 3600 * rate.value:.4g} {units}, "
            f"but the share done is {work:.4g}; correct hours, throughput or share_done"
        )
        yield Fault(("throughput",), message)
    peak = report.peak_memory_gib
    if peak is not None and peak > MEMORY_ROUNDING * planned.device_memory_gib:
        message = f"{peak:g} GiB is more than one {planned.accelerator} has ({planned.device_memory_gib:.4g} GiB)"
        yield Fault(("peak_memory_gib",), f"{message}; give the peak of one accelerator")


def _absurd(report: ActualsDocument, planned: Planned) -> Iterator[Fault]:
    """Figures that differ from the prediction a hundredfold."""
    rate = report.throughput.value if report.throughput is not None else None
    measured = {"hours": report.hours, "throughput": rate, "peak_memory_gib": report.peak_memory_gib}
    for name, value in measured.items():
        predicted = planned.predicted[name]
        if value is not None and not 1 / ABSURD_RATIO <= value / predicted <= ABSURD_RATIO:
            message = f"{value:g} is {value / predicted:.3g} times the predicted {predicted:.4g}"
            yield Fault((name,), f"{message}; correct it, or confirm the measurement (confirm: true, or --confirm)")
    most = ABSURD_RATIO * max(1.0, planned.predicted["preemptions"])
    if report.preemptions is not None and report.preemptions > most:
        message = f"{report.preemptions} where {planned.predicted['preemptions']:.3g} were expected"
        yield Fault(("preemptions",), f"{message}; correct it, or confirm the count (confirm: true, or --confirm)")
