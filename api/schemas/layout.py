"""The layout of a job on accelerators: `fsdp,tp=2,pp=4` on a command line, a mapping in a document."""

from typing import Annotated

from gpuplan.catalog.parsing.document_fields import Document, choice, nearest, whole_number
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.parsing.quantities import shown, whole
from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.planner.model.job import CHECKPOINTING
from gpuplan.planner.performance.estimator_request import LayoutRequest

#: Upper limit of a parallel degree, above the size of any cluster.
MOST_WAYS = 262_144
_LONGEST = 200

#: Words for the sharding of states (Rajbhandari 2020; FSDP shards like ZeRO-3).
_ZERO_STAGES = {"ddp": 0, "fsdp": 3, "hsdp": 3, "zero0": 0, "zero1": 1, "zero2": 2, "zero3": 3}
_PARTS = {
    **dict.fromkeys(("dp", "data"), "data"),
    **dict.fromkeys(("tp", "tensor"), "tensor"),
    **dict.fromkeys(("pp", "pipeline"), "pipeline"),
    **dict.fromkeys(("cp", "context"), "context"),
    **dict.fromkeys(("ep", "expert"), "expert"),
    **dict.fromkeys(("vpp", "vp", "interleave"), "interleave"),
    **dict.fromkeys(("zero", "zero_stage"), "zero_stage"),
    **dict.fromkeys(("mb", "mbs", "micro_batch"), "micro_batch"),
    **dict.fromkeys(("ckpt", "ac", "checkpointing"), "checkpointing"),
}
_ACCEPTED = "write parts such as fsdp,tp=2,pp=4,cp=1,ep=1,mb=2,ckpt=full"

Ways = Annotated[int, whole_number(1, MOST_WAYS)]


class LayoutDocument(Document):
    """The parts of the layout that the user fixes; the planner chooses the others."""

    data: Ways | None = None
    tensor: Ways | None = None
    pipeline: Ways | None = None
    context: Ways | None = None
    expert: Ways | None = None
    interleave: Ways | None = None
    zero_stage: Annotated[int, whole_number(0, 3)] | None = None
    micro_batch: Annotated[int, whole_number(1, 1_048_576)] | None = None
    checkpointing: Annotated[str, choice([name for name in CHECKPOINTING if name != "auto"])] | None = None

    def request(self) -> LayoutRequest:
        """The estimator's type of this part."""
        return LayoutRequest(**self.model_dump())

    def faults(self, gpus: int) -> list[Fault]:
        """Contradictions: degrees whose product is not `gpus`, an interleaved pipeline of one stage."""
        ways = {name: getattr(self, name) for name in ("data", "tensor", "pipeline", "context")}
        given = {name: number for name, number in ways.items() if number is not None}
        product = 1
        for number in given.values():
            product *= number
        text = " x ".join(f"{name} {number}" for name, number in given.items())
        faults = []
        if len(given) == len(ways) and product != gpus:
            faults.append(Fault(("layout",), f"{text} is {product}, but must be gpus ({gpus}); leave one part out"))
        elif gpus % product:
            faults.append(
                Fault(("layout",), f"{text} is {product}, which does not divide gpus ({gpus}); give divisors")
            )
        if self.interleave is not None and self.interleave > 1 and self.pipeline == 1:
            faults.append(Fault(("layout", "interleave"), "needs a pipeline of 2 or more stages; leave it out"))
        return faults


def parse_layout(text: str) -> JsonObject:
    """The layout mapping that `fsdp,tp=2,pp=4` stands for.

    Raises `UnusableInput` at `layout` for unknown words, parts given twice and numbers out of range.
    """
    parts: JsonObject = {}
    if not text.strip() or len(text) > _LONGEST:
        raise UnusableInput.at("layout", message=f"{shown(text)} is not a layout; {_ACCEPTED}")
    for word in text.split(","):
        part, value = _part(word.strip())
        if part in parts:
            raise UnusableInput.at("layout", message=f"{part} is given twice in {shown(text)}; give it once")
        parts[part] = value
    return parts


def _part(word: str) -> tuple[str, int | str]:
    name, equals, value = (piece.strip().lower() for piece in word.partition("="))
    if not equals and name in _ZERO_STAGES:
        return "zero_stage", _ZERO_STAGES[name]
    if not equals or name not in _PARTS:
        near = nearest(name, [*_ZERO_STAGES, *(f"{part}=" for part in _PARTS)], most=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UnusableInput.at("layout", message=f"{shown(word)} is not understood; {hint}{_ACCEPTED}")
    part = _PARTS[name]
    if part == "checkpointing":
        return part, value
    try:
        return part, whole(value, low=0, high=MOST_WAYS)
    except ValueError as error:
        raise UnusableInput.at("layout", message=f"{name}: {error}") from None
