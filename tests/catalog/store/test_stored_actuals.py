"""Reports on runs are kept once, in order, on either database, and are gone when they are forgotten."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command

from gpuplan.catalog.runtime.errors import StoreFailure
from gpuplan.catalog.store.plan_store import Actual
from gpuplan.catalog.store.schema_upgrade import alembic_config
from gpuplan.catalog.store.snapshot_list import NotStored
from gpuplan.catalog.store.store import Store
from tests.catalog.snapshots_for_tests import NIGHT

REPORT = Actual(
    id="run-1",
    plan_id="p",
    task="language",
    accelerator="L4",
    reported_at=NIGHT,
    reported_by="",
    running=True,
    share_done=0.25,
    hours=1.5,
    throughput=None,
    peak_memory_gib=20.25,
    preemptions=0,
    expected={"hours": 6.0},
)


@pytest.fixture
def planned(store: Store) -> Store:
    store.save_plan("p", "s", {}, {"outcome": "planned"}, NIGHT)
    store.save_plan("q", "s", {}, {"outcome": "planned"}, NIGHT)
    return store


def test_reports_come_back_as_they_were_given_the_oldest_first(planned: Store) -> None:
    later = replace(REPORT, id="run-0", plan_id="q", reported_at=NIGHT + timedelta(hours=1), hours=None)
    planned.save_actual(later)
    assert planned.save_actual(REPORT) == REPORT
    assert planned.actuals() == (REPORT, later)
    assert planned.actual_ids() == ("run-1", "run-0")
    assert planned.actuals("q") == (later,)
    assert planned.actuals("r") == ()


def test_a_report_given_twice_counts_once_as_it_first_was(planned: Store) -> None:
    planned.save_actual(REPORT)
    assert planned.save_actual(replace(REPORT, reported_at=NIGHT + timedelta(hours=1))) == REPORT
    assert planned.actuals() == (REPORT,)


def test_a_forgotten_report_is_gone_and_the_others_stay(planned: Store) -> None:
    other = planned.save_actual(replace(REPORT, id="run-2"))
    planned.save_actual(REPORT)
    planned.forget_actual("run-1")
    assert planned.actuals() == (other,)
    with pytest.raises(NotStored, match="no report 'run-1' is stored here"):
        planned.forget_actual("run-1")
    assert planned.forget_actuals() == 1
    assert planned.actuals() == ()


def test_a_report_on_a_plan_that_is_not_there_is_refused_by_the_database(store: Store) -> None:
    with pytest.raises(StoreFailure):
        store.save_actual(REPORT)
    assert store.actuals() == ()


def test_a_database_of_the_first_revision_keeps_its_plans_and_takes_reports(
    url: str, open_store: Callable[[str], Store]
) -> None:
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        command.upgrade(alembic_config(connection), "0001")
        assert not sa.inspect(connection).has_table("actuals")
        connection.exec_driver_sql("INSERT INTO plans VALUES ('p', 's', '{}', '{\"outcome\": \"planned\"}', 0)")
    engine.dispose()
    upgraded = open_store(url)
    assert upgraded.plan("p").outcome == {"outcome": "planned"}
    upgraded.save_actual(REPORT)
    assert upgraded.actuals("p") == (REPORT,)


def test_only_a_file_that_nobody_made_is_not_there(tmp_path: Path, open_store: Callable[[str], Store]) -> None:
    url = f"sqlite:///{tmp_path / 'gpuplan.sqlite3'}"
    assert not Store.is_there(url)
    open_store(url)
    assert Store.is_there(url)
    assert Store.is_there("postgresql://nobody@localhost/gpuplan")
