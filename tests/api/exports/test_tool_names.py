"""Any job name becomes names and labels that tools accept, by the rules that stand at each function."""

import re

from hypothesis import given
from hypothesis import strategies as st

from gpuplan.api.exports.handover_reader import read_handover
from gpuplan.api.exports.tool_names import label, run_name, tag
from tests.api.exports.documents import answer

ANY_NAME = st.text(max_size=300)


@given(ANY_NAME)
def test_every_run_name_is_a_short_dns_label_that_ends_in_plan_and_phase(name: str) -> None:
    handover = read_handover(answer(name=name))
    shortened = run_name(handover, handover.phases[0])
    assert re.fullmatch(r"[a-z](-?[a-z0-9])*-012345-1", shortened)
    assert len(shortened) <= 40


@given(ANY_NAME)
def test_every_label_is_one_of_kubernetes_and_of_google_cloud(text: str) -> None:
    assert re.fullmatch(r"([a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?)?", label(text))


@given(ANY_NAME)
def test_every_tag_is_one_of_aws_and_of_dstack(text: str) -> None:
    assert re.fullmatch(r"[a-zA-Z0-9 .:/=_\-+@]{0,256}", tag(text))


@given(st.from_regex(r"[a-z][a-z0-9]{0,20}(-[a-z0-9]{1,5})?", fullmatch=True))
def test_a_plain_name_stays_as_it_is(name: str) -> None:
    handover = read_handover(answer(name=name))
    assert run_name(handover, handover.phases[0]) == f"{name}-012345-1"
    assert label(name) == tag(name) == name


def test_accents_are_taken_off_and_other_scripts_become_dashes() -> None:
    assert label("Übung 日本 7B") == "ubung-7b"
    assert tag("Übung 日本 7B") == "Ubung _ 7B"
    handover = read_handover(answer(name="日本"))
    assert run_name(handover, handover.phases[0]) == "job-012345-1"


def test_the_name_of_a_job_travels_on_one_line_without_control_characters() -> None:
    assert read_handover(answer(name="a\nb\x1b[31m\u202ec")).job == "a b\ufffd[31m\ufffdc"
    assert read_handover(answer(name="")).job == "job"
