"""The README shows what gpuplan really prints."""

import re

from tools.benchmarks.readme import printed, shown

#: What changes with the day of the run: dates, clock times, ages in days, and the id that follows from the start.
BY_THE_CLOCK = re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d UTC)?|\d+ days|plan-[0-9a-f]+")


def test_the_example_in_the_readme_is_what_the_command_prints() -> None:
    arguments, text = shown()
    assert timeless(text) == timeless(printed(arguments))


def timeless(text: str) -> list[str]:
    return [BY_THE_CLOCK.sub("*", line).rstrip() for line in text.strip().splitlines()]
