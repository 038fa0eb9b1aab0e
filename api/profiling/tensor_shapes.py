"""Tensor shapes on the command line: 16x3x224x224, or 8x1000:int64."""

import re
from dataclasses import asdict, dataclass
from typing import Any

from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import UnusableInput

DTYPES = {
    **dict.fromkeys(("float32", "fp32", "float"), "float32"),
    **dict.fromkeys(("bfloat16", "bf16"), "bfloat16"),
    **dict.fromkeys(("float16", "fp16", "half"), "float16"),
    **dict.fromkeys(("float64", "fp64", "double"), "float64"),
    **dict.fromkeys(("int64", "long", "int"), "int64"),
    "int32": "int32",
    "uint8": "uint8",
    "bool": "bool",
}
#: Most numbers of an input; prevents a typing error from allocating all memory.
_MOST_NUMBERS = 10**11
_ACCEPTED = "write sizes separated by x, with a type unless it is float32: 16x3x224x224, 8x1000:int64"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One tensor: its sizes and the name of its type in torch."""

    shape: tuple[int, ...]
    dtype: str

    def document(self) -> dict[str, Any]:
        """The counter's JSON form."""
        return asdict(self)


def read_shape(text: str, *, field: str) -> Shape:
    """The tensor that `text` describes; raises `UnusableInput` at `field`."""
    sizes, colon, name = text.strip().partition(":")
    if not re.fullmatch(r"[0-9]{1,12}(x[0-9]{1,12}){0,15}", sizes):
        raise UnusableInput.at(field, message=f"{shown(text)} is not a shape; {_ACCEPTED}")
    shape = tuple(int(size) for size in sizes.split("x"))
    numbers = 1
    for size in shape:
        numbers *= size
    if not 1 <= numbers <= _MOST_NUMBERS:
        raise UnusableInput.at(
            field, message=f"{shown(text)} has {numbers:,} numbers; accepted are 1 to {_MOST_NUMBERS:,}"
        )
    if colon and name not in DTYPES:
        known = ", ".join(sorted(set(DTYPES.values())))
        raise UnusableInput.at(field, message=f"{shown(name)} is not a numeric type; accepted: {known}")
    return Shape(shape=shape, dtype=DTYPES[name] if colon else "float32")
