"""What of an answer is handed over, and what is refused before it can end up in another tool's file."""

from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest

from gpuplan.api.exports.file_comments import heading
from gpuplan.api.exports.handover_reader import read_handover
from gpuplan.api.exports.plan_handover import Wishes
from gpuplan.catalog.runtime.errors import UnusableInput
from tests.api.exports.documents import answer, in_phases, phase


def changed(path: tuple[str | int, ...], value: object) -> dict[str, Any]:
    """An answer with one value replaced."""
    document = deepcopy(answer())
    part: Any = document
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = value
    return document


FIRST: tuple[str | int, ...] = ("plan", "phases", 0)


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        (("outcome",), "infeasible", "outcome"),
        (("outcome",), None, "outcome"),
        (("plan",), "x", "plan"),
        (("plan", "id"), "plan-../../etc/passwd", "plan.id"),
        (("plan", "snapshot_id"), "$(x)", "plan.snapshot_id"),
        (("plan", "version"), "1\n#", "plan.version"),
        (("plan", "start"), "tomorrow", "plan.start"),
        (("plan", "start"), "2026-11-28T12:00:00", "plan.start"),
        (("plan", "hours", "p95"), float("nan"), "plan.hours.p95"),
        (("plan", "phases"), [], "plan.phases"),
        (("plan", "phases"), [phase()] * 21, "plan.phases"),
        ((*FIRST, "provider"), "oracle", "plan.phases[0].provider"),
        ((*FIRST, "region"), "us-east-1; rm -rf /", "plan.phases[0].region"),
        ((*FIRST, "zone"), "-x", "plan.phases[0].zone"),
        ((*FIRST, "instance_type"), "p5 48xlarge", "plan.phases[0].instance_type"),
        ((*FIRST, "accelerator"), "H9000", "plan.phases[0].accelerator"),
        ((*FIRST, "nodes"), 1.5, "plan.phases[0].nodes"),
        ((*FIRST, "nodes"), True, "plan.phases[0].nodes"),
        ((*FIRST, "nodes"), 0, "plan.phases[0].nodes"),
        ((*FIRST, "price_kind"), "free", "plan.phases[0].price_kind"),
        ((*FIRST, "price_kind"), "owned", "plan.phases[0].price_kind"),
        ((*FIRST, "usd_per_node_hour"), "12.5 USD", "plan.phases[0].usd_per_node_hour"),
        ((*FIRST, "usd_per_node_hour"), "-1", "plan.phases[0].usd_per_node_hour"),
        ((*FIRST, "role"), "spare", "plan.phases[0].role"),
        ((*FIRST, "precision"), "bf16 && x", "plan.phases[0].precision"),
        ((*FIRST, "layout", "tensor"), "2", "plan.phases[0].layout.tensor"),
        ((*FIRST, "layout", "checkpointing"), "`x`", "plan.phases[0].layout.checkpointing"),
        ((*FIRST, "cost_usd", "breakdown", "compute"), "=1+1", "plan.phases[0].cost_usd.breakdown.compute"),
        ((*FIRST, "moved"), "there", "plan.phases[0].moved"),
        ((*FIRST, "switch_by"), "later", "plan.phases[0].switch_by"),
    ],
)
def test_a_field_that_no_plan_has_is_named(path: tuple[str | int, ...], value: object, field: str) -> None:
    with pytest.raises(UnusableInput) as refused:
        read_handover(changed(path, value))
    assert [fault.field for fault in refused.value.faults] == [field]


def test_phases_know_what_was_done_before_them_and_when_they_hand_over() -> None:
    first, second, standby = read_handover(in_phases()).phases
    assert (first.share_before, second.share_before) == (0.0, 0.75)
    assert first.hands_over_at == second.starts_at
    assert second.hands_over_at is None
    assert second.switch_by == standby.switch_by
    assert (first.switch_by, second.switch_share, standby.switch_share) == (None, 0.58, 0.58)
    assert standby.hands_over_at is None
    assert standby.stands_by
    assert second.moved_from == "p5.48xlarge aws us-east-1 use1-az4"


def test_a_phase_hands_over_when_it_ends_not_when_the_window_of_the_next_opens() -> None:
    document = in_phases()
    second = document["plan"]["phases"][1]
    second |= {"starts_at": "2026-12-02T18:00:00Z", "hours": 50.0}
    read = read_handover(document).phases
    assert read[0].hands_over_at == read[0].ends_at == datetime(2026, 12, 1, tzinfo=UTC)
    assert read[1].ends_at == datetime(2026, 12, 3, 2, tzinfo=UTC)
    assert "from 2026-12-02T18:00:00Z for about 8 h" in " ".join(heading(read_handover(document), read[1], Wishes()))


def test_the_hours_of_19_in_20_runs_of_a_phase_are_as_late_as_the_plan_may_be() -> None:
    handover = read_handover(answer())
    assert handover.p95_hours_of(handover.phases[0]) == 100


def test_neither_a_standby_nor_what_it_stands_behind_is_held_to_the_hours_of_an_average_run() -> None:
    handover = read_handover(in_phases())
    first, spot, standby = (handover.p95_hours_of(phase) for phase in handover.phases)
    assert (first, spot, standby) == (75, 100, 100)
