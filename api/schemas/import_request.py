"""The request for an import: configurations of other tools as text."""

from typing import Annotated, Any

from pydantic import ConfigDict

from gpuplan.catalog.parsing.document_fields import Document, Label, Reads, read_as, whole_number
from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import MAX_ACCELERATORS

MOST_FILES = 16
_LONGEST_NAME = 200
_TEXT = {"anyOf": [{"type": "string"}, {"type": "number"}]}


def _files(value: object) -> dict[str, str]:
    """Texts by file name, the configuration first."""
    if not isinstance(value, dict) or not 0 < len(value) <= MOST_FILES:
        raise ValueError(
            f"{shown(value)} is not accepted; write 1 to {MOST_FILES} texts by file name, the first to read"
        )
    for name, text in value.items():
        if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or not isinstance(text, str):
            raise ValueError(f"{shown(name)} is not accepted; write a file name and its text")
    return value


def _text(value: object) -> str:
    """A text, or a number as a text."""
    if isinstance(value, bool) or not isinstance(value, str | int | float) or not str(value):
        raise ValueError(f"{shown(value)} is not accepted; write a text or a number")
    return str(value)


Files = Annotated[
    dict[str, str],
    Reads(
        _files,
        {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "minProperties": 1,
            "maxProperties": MOST_FILES,
            "description": "texts by file name: the configuration first, then the files that it names",
            "examples": [{"sft.yaml": "model_name_or_path: Qwen/Qwen3-8B\nstage: sft\nfinetuning_type: lora\n"}],
        },
    ),
]
Text = Annotated[str, Reads(_text, _TEXT)]


class ImportDocument(Document):
    """Texts by file name, and what they do not state, as the flags of `gpuplan import`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "files": {
                        "sft.yaml": "model_name_or_path: Qwen/Qwen3-8B\nstage: sft\nfinetuning_type: lora\n"
                        "cutoff_len: 2048\nper_device_train_batch_size: 4\ngradient_accumulation_steps: 2\n"
                        "num_train_epochs: 2\nbf16: true\n"
                    },
                    "samples": "50k",
                    "gpus": 8,
                }
            ]
        }
    )

    files: Files
    tokens: Text | None = None
    samples: Text | None = None
    gpus: Annotated[int, whole_number(1, MAX_ACCELERATORS)] | None = None
    model: Annotated[str, Label] | None = None
    length: Annotated[int, whole_number(1, 100_000_000)] | None = None
    by: Text | None = None
    budget: Text | None = None
    on: Annotated[str, Label] | None = None
    like: Annotated[str, Label] | None = None


def parse_import(document: Any) -> ImportDocument:
    """The request. Raises `UnusableInput` naming every wrong field."""
    if not isinstance(document, dict):
        raise UnusableInput.at(message="the request is no mapping of keys to values")
    return read_as(ImportDocument, document)
