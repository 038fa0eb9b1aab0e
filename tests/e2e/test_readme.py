"""The README shows what gpuplan really prints."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tools.benchmarks.readme import ROOT, printed, shown

#: What changes with the minute of the run: dates, clock times, and the id that follows from the start.
BY_THE_CLOCK = re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d UTC)?|plan-[0-9a-f]+")
DEADLINE = re.compile(r"deadline  (\d{4}-\d\d-\d\d \d\d:\d\d) UTC")


def test_the_example_in_the_readme_is_what_the_command_prints_on_the_day_it_shows(tmp_path: Path) -> None:
    arguments, text = shown()
    [name] = re.findall(r"\S+\.yaml", arguments)
    job = (ROOT / name).read_text(encoding="utf-8")
    [days] = re.findall(r"^deadline: (\d+)d$", job, re.MULTILINE)
    [due] = DEADLINE.findall(text)
    # Prices are expected from their age at the start, so an example without a start has other figures on other days.
    start = datetime.strptime(due, "%Y-%m-%d %H:%M").replace(tzinfo=UTC) - timedelta(days=int(days))
    dated = tmp_path / "dated.yaml"
    dated.write_text(f"{job}start: {start:%Y-%m-%dT%H:%MZ}\n", encoding="utf-8")
    assert timeless(text) == timeless(printed(arguments.replace(name, str(dated))))


def timeless(text: str) -> list[str]:
    return [BY_THE_CLOCK.sub("*", line).rstrip() for line in text.strip().splitlines()]
