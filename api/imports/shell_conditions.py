"""Whether the tests of a bash script hold: `[ ... ]`, `[[ ... ]]`, `test ...` and `(( ... ))`, by what is known.

A variable that nothing sets is empty, as it is when the script runs alone; a test of files or of what a command prints cannot
be told.
"""

import fnmatch
import re

from gpuplan.api.imports.shell_statements import Statement, raw_words
from gpuplan.api.imports.shell_words import Variables, arithmetic, is_open, words

_COMPARISONS = {"-gt": ">", "-lt": "<", "-ge": ">=", "-le": "<=", "-eq": "==", "-ne": "!="}
_TEST = re.compile(r"(?:\[\[?\s+(.*?)\s+\]\]?|test\s+(.*))", re.DOTALL)
_POSITIONAL = re.compile(r"\$(?:[1-9]|\{[1-9]\d?\})")
_ASSIGNING = re.compile(r"\(\(\s*\w+\s*[-+*/%]?=[^=]")


class _Tested(Variables):
    """Variables of which those that are not set are empty."""

    __slots__ = ()

    def get(self, name: str) -> str | None:
        """The value, empty if the variable is not set."""
        value = Variables.get(self, name)
        return "" if value is None else value

    def all_of(self, name: str) -> list[str] | None:
        """The elements, none if the array is not set."""
        return Variables.all_of(self, name) or []


def unset(variables: Variables) -> Variables:
    """The same variables, those that nothing sets empty."""
    return _Tested(variables.values, variables.arrays, variables.unknown, variables.positional)


def is_test(text: str) -> bool:
    """Whether a statement is a test."""
    arithmetic_test = text.startswith("((") and text.endswith("))") and not _ASSIGNING.match(text)
    return arithmetic_test or _TEST.fullmatch(text) is not None


def condition(listed: list[Statement], variables: Variables) -> bool | None:
    """Whether a list of tests holds; None if it cannot be told."""
    result: bool | None = True
    for index, one in enumerate(listed):
        text = re.sub(r"^(?:(?:el)?if|while|until)\b", "", one.text).strip()
        negated = text.startswith("! ")
        value = truth_of(text[2:].strip() if negated else text, variables)
        value = (not value) if negated and value is not None else value
        if index == 0 or not one.before:
            result = value
        elif one.before == "&&":
            result = _all([result, value])
        else:
            result = _any([result, value])
    return result


def truth_of(text: str, variables: Variables) -> bool | None:
    """Whether a test holds; None if it cannot be told, or is no test."""
    if text.startswith("((") and text.endswith("))"):
        number = arithmetic(text[2:-2], unset(variables))
        return None if number is None else number != 0
    match = _TEST.fullmatch(text)
    if match is None:
        return True if text in ("true", ":") else False if text == "false" else None
    return _any(
        [
            _all([_one(part, variables) for part in re.split(r"\s(?:&&|-a)\s", either)])
            for either in re.split(r"\s(?:\|\||-o)\s", match[1] or match[2])
        ]
    )


def _all(results: list[bool | None]) -> bool | None:
    return False if False in results else None if None in results else True


def _any(results: list[bool | None]) -> bool | None:
    return True if True in results else None if None in results else False


def _one(text: str, variables: Variables) -> bool | None:
    # What is empty stays a word.
    listed = [
        " ".join(words(f'"{raw}"' if raw.startswith("$") else raw, unset(variables))) for raw in raw_words(text.strip())
    ]
    if listed[:1] == ["!"]:
        inner = _one(text.strip()[1:], variables)
        return None if inner is None else not inner
    # A script that is run without arguments has no positional parameters.
    listed = ["" if _POSITIONAL.fullmatch(word) else word for word in listed]
    if any(is_open(word) for word in listed):
        return None
    if len(listed) == 1:
        return listed[0] != ""
    if len(listed) == 2 and listed[0] in ("-z", "-n"):
        return (listed[1] == "") == (listed[0] == "-z")
    if len(listed) == 3 and listed[1] in ("=", "==", "!=") and len(listed[0]) < 1000:
        return fnmatch.fnmatchcase(listed[0], listed[2]) != (listed[1] == "!=")
    if len(listed) == 3 and listed[1] in _COMPARISONS:
        number = arithmetic(f"{listed[0]} {_COMPARISONS[listed[1]]} {listed[2]}", variables)
        return None if number is None else number != 0
    return None
