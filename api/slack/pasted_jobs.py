"""A job in a pasted or uploaded text: a job file, or a configuration of another tool with words that complete it."""

from dataclasses import fields

from gpuplan.api.imports.job_from_facts import Given
from gpuplan.api.imports.pasted_text import IncompleteConfigError, pasted_job
from gpuplan.catalog.parsing.document_fields import nearest
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.runtime.errors import Fault, UnusableInput

#: Words before a code block, by the field that they give.
_WORDS = {
    "tokens": "tokens=2B or samples=50k",
    "model": "model=NAME",
    "sequence_length": "length=2048",
    "on": 'on="8 x A100-80GB"',
    "like": "like=MODEL",
}
_WHOLE = {"gpus", "length"}
_GIVEN = tuple(one.name for one in fields(Given) if one.name != "data")


def job_of_text(text: str, words: list[str]) -> JsonObject:
    """The job of a text, completed by words such as `samples=50k gpus=8`.

    Raises `UnusableInput` that names what is missing as words.
    """
    given = _given(words) if words else None
    try:
        return pasted_job(text, "pasted", given)
    except IncompleteConfigError as error:
        lacks = (
            Fault((one.field,), f"{one.why}; write {_WORDS[one.field]} before the code block") for one in error.missing
        )
        raise UnusableInput(*lacks) from None


def _given(words: list[str]) -> Given:
    values: dict[str, object] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not value or name not in _GIVEN:
            near = nearest(name, _GIVEN, most=1)
            hint = f"did you mean {near[0]}=?" if near else f"accepted are {', '.join(f'{one}=' for one in _GIVEN)}"
            raise UnusableInput.at("plan", message=f"{word[:60]!r} before a configuration is not accepted; {hint}")
        if name in _WHOLE and not (value.isascii() and value.isdigit() and 0 < int(value) < 10**9):
            raise UnusableInput.at(name, message=f"{value[:20]!r} is not accepted; write a whole number above zero")
        values[name] = int(value) if name in _WHOLE else value
    return Given(**values)  # type: ignore[arg-type]
