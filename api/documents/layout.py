"""How a job is spread over accelerators: `fsdp,tp=2,pp=4` on a command line, a mapping in a document."""

from typing import Annotated, Any

from api.documents.words import CHECKPOINTING
from catalog.document_fields import Document, choice, nearest, whole_number
from catalog.errors import Fault, UnusableInput
from catalog.quantities import shown, whole
from planner.estimate.machines import LayoutRequest

#: More ways than any cluster has accelerators.
MOST_WAYS = 262_144
_LONGEST = 200

#: Words that stand for a sharding of the states (Rajbhandari 2020; FSDP shards as ZeRO-3 does).
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
    """The parts of the layout that the user fixes; the rest is chosen."""

    data: Ways | None = None
    tensor: Ways | None = None
    pipeline: Ways | None = None
    context: Ways | None = None
    expert: Ways | None = None
    interleave: Ways | None = None
    zero_stage: Annotated[int, whole_number(0, 3)] | None = None
    micro_batch: Annotated[int, whole_number(1, 1_048_576)] | None = None
    checkpointing: Annotated[str, choice([each for each in CHECKPOINTING if each != "auto"])] | None = None

    def request(self) -> LayoutRequest:
        """As the estimator takes it."""
        return LayoutRequest(**self.model_dump())

    def faults(self, gpus: int) -> list[Fault]:
        """What contradicts: ways that do not multiply to `gpus`, an interleaved pipeline of one stage."""
        ways = {name: getattr(self, name) for name in ("data", "tensor", "pipeline", "context")}
        given = {name: number for name, number in ways.items() if number is not None}
        product = 1
        for number in given.values():
            product *= number
        text = " x ".join(f"{name} {number}" for name, number in given.items())
        found = []
        if len(given) == len(ways) and product != gpus:
            found.append(Fault(("layout",), f"{text} is {product}, and must be gpus ({gpus}); leave one part out"))
        elif gpus % product:
            found.append(Fault(("layout",), f"{text} is {product}, which does not divide gpus ({gpus}); give divisors"))
        if self.interleave is not None and self.interleave > 1 and self.pipeline == 1:
            found.append(Fault(("layout", "interleave"), "needs a pipeline of 2 or more stages; leave it out"))
        return found


def parse_layout(text: str) -> dict[str, Any]:
    """The layout mapping that `fsdp,tp=2,pp=4` stands for.

    Raises `UnusableInput` at `layout` for unknown words, parts given twice and numbers out of range.
    """
    found: dict[str, Any] = {}
    if not text.strip() or len(text) > _LONGEST:
        raise UnusableInput.at("layout", message=f"{shown(text)} is not a layout; {_ACCEPTED}")
    for word in text.split(","):
        part, value = _part(word.strip())
        if part in found:
            raise UnusableInput.at("layout", message=f"{part} is given twice in {shown(text)}; give it once")
        found[part] = value
    return found


def _part(word: str) -> tuple[str, int | str]:
    name, equals, value = (each.strip().lower() for each in word.partition("="))
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
