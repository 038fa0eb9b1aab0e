"""Tensors as people write them on a command line: 16x3x224x224, or 8x1000:int64."""

import re
from dataclasses import asdict, dataclass
from typing import Any

from catalog.errors import UnusableInput
from catalog.quantities import shown

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
#: More numbers than any input of one step has; keeps a slip from asking for all memory.
_MOST_NUMBERS = 10**11
_ACCEPTED = "write sizes with x between them, and a type if it is not float32: 16x3x224x224, 8x1000:int64"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One tensor: its sizes and the name of its type in torch."""

    shape: tuple[int, ...]
    dtype: str

    def document(self) -> dict[str, Any]:
        """As the counter reads it."""
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
        raise UnusableInput.at(field, message=f"{shown(name)} is not a type of numbers; accepted: {known}")
    return Shape(shape=shape, dtype=DTYPES[name] if colon else "float32")
