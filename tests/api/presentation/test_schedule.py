"""What a plan in phases does when, as a reader sees it."""

import io

from rich.console import Console

from gpuplan.api.cli.sections import print_sections
from gpuplan.api.presentation.plan import _worth
from gpuplan.api.presentation.schedule import render_schedule
from gpuplan.api.presentation.sections import Block, Heading, sections_of
from gpuplan.planner.model.plan import Plan
from gpuplan.planner.model.shared import Phase
from tests.partial_answers import answer_of

FIRST = {
    "provider": "aws",
    "region": "us-east-1",
    "zone": "use1-az4",
    "instance_type": "p5.48xlarge",
    "nodes": 2,
    "slice_hosts": None,
    "price_kind": "spot",
    "share": 0.624,
    "hours": 30.0,
    "starts_at": "2026-11-21T08:00:00Z",
    "cost_usd": {"expected": "1234.50"},
    "moved": None,
}
MOVED = {
    "from": {"provider": "aws", "region": "us-east-1", "zone": "use1-az4", "instance_type": "p5.48xlarge"},
    "checkpoint_gb": 96.4,
    "data_gb": 200.0,
    "egress_usd": "12.70",
}
SECOND = FIRST | {
    "provider": "gcp",
    "region": "us-central1",
    "zone": "",
    "instance_type": "a3-highgpu-8g",
    "price_kind": "on_demand",
    "share": 0.376,
    "starts_at": "2026-11-22T14:00:00Z",
    "moved": MOVED,
}


def text_of(*parts: Block | Heading) -> str:
    console = Console(file=io.StringIO(), width=300)
    print_sections(sections_of(*parts), on=console)
    written = console.file
    assert isinstance(written, io.StringIO)
    return written.getvalue()


def text(*phases: dict[str, object]) -> str:
    return text_of(*render_schedule([answer_of(Phase, phase) for phase in phases]))


def test_a_plan_that_never_moves_has_no_schedule() -> None:
    assert text(FIRST).strip() == ""


def test_every_phase_has_a_row_with_its_start_share_and_cost() -> None:
    rows = [line for line in text(FIRST, SECOND).splitlines() if "x " in line and "%" in line]
    assert ["62.4 %" in rows[0], "37.6 %" in rows[1]] == [True, True]
    assert "2026-11-21 08:00 UTC" in rows[0]
    assert "$1,234.50" in rows[0]


def test_a_move_says_what_is_written_where_it_goes_and_what_that_costs() -> None:
    schedule_text = " ".join(text(FIRST, SECOND).split())
    for part in ("checkpoint of 96.4 GB", "goes to gcp us-central1", "200 GB of data", "$12.70 of egress"):
        assert part in schedule_text


def test_machines_are_given_back_when_their_phase_ends_not_when_the_window_of_the_next_opens() -> None:
    waits = SECOND | {"starts_at": "2026-11-24T18:00:00Z", "hours": 64.0}
    schedule_text = " ".join(text(FIRST, waits).split())
    assert "at 2026-11-22 14:00 UTC, p5.48xlarge in aws us-east-1 use1-az4 writes" in schedule_text
    assert "reads it and continues at 2026-11-24 18:00 UTC" in schedule_text
    row = next(line for line in text(FIRST, waits).splitlines() if "37.6 %" in line)
    assert "12 h" in row
    assert "64 h" not in row


def test_a_plan_with_moves_says_what_they_save_or_that_nothing_else_would_do() -> None:
    alone = FIRST | {"label": "without a move", "extra_usd": "12.00", "cost_usd": "1200.00"}
    alone |= {"meets_deadline": True, "meets_budget": True}
    plan = {"phases": [FIRST, SECOND], "alternatives": [alone]}
    assert "saves $12.00 (1.0 %) over 2 x p5.48xlarge, aws us-east-1 use1-az4, spot" in text_of(
        *_worth(answer_of(Plan, plan))
    )
    little = plan | {"alternatives": [alone | {"extra_usd": "0.01"}]}
    assert "$0.01 (less than 0.1 %)" in text_of(*_worth(answer_of(Plan, little)))
    late = plan | {"alternatives": [alone | {"meets_deadline": False}]}
    assert "no single configuration meets the requirements" in text_of(*_worth(answer_of(Plan, late)))
    assert _worth(answer_of(Plan, {"phases": [FIRST]})) == []


def test_within_a_region_no_egress_is_spoken_of() -> None:
    stays = SECOND | {"provider": "aws", "region": "us-east-1"}
    assert "egress" not in text(FIRST, stays)
