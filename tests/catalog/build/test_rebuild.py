"""The whole build on the real facts, against the embedded files."""

import csv
from collections import Counter
from pathlib import Path

import pytest

from catalog.build.__main__ import main
from catalog.build.fact_tables import mapping_table
from catalog.data_tables import data_table
from catalog.embedded import embedded_snapshot
from catalog.snapshot import snapshot_id_of

REPOSITORY = Path(__file__).parents[3]


@pytest.mark.shared_data
def test_a_rebuild_gives_the_embedded_files_byte_for_byte(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--facts", str(shared_data), "--out", str(tmp_path)]) == 0
    written = sorted(path.name for path in tmp_path.iterdir())
    assert len(written) == 8
    for name in written:
        assert (tmp_path / name).read_bytes() == (REPOSITORY / "catalog" / "data" / name).read_bytes(), name
    assert "  8,852  rows read" in capsys.readouterr().out


@pytest.mark.shared_data
def test_every_price_row_is_offered_or_set_aside_by_name(shared_data: Path) -> None:
    with (shared_data / "prices" / "list_prices.csv").open(encoding="utf-8", newline="") as file:
        listed = list(csv.DictReader(file))
    kinds = {row["source_kind"]: row["price_kind"] for row in mapping_table("price_kinds")}
    offered = {offer.key for offer in embedded_snapshot().offers}
    with (REPOSITORY / "catalog" / "data" / "quarantine.csv").open(encoding="utf-8", newline="") as file:
        aside = {_key(row, row["price_kind"]) for row in csv.DictReader(file)}
    per_chip = {row["priced_from"] for row in data_table("tpu_slices.csv")}
    fates = Counter(
        "set aside"
        if _key(row, kinds[row["price_kind"]]) in aside
        else "chip"
        if row["instance_type"] in per_chip
        else "offered"
        if _key(row, kinds[row["price_kind"]]) in offered
        else "lost"
        for row in listed
    )
    assert fates == {"offered": 8592, "set aside": 121, "chip": 139}


def test_missing_facts_are_said_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--facts", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "--facts" in said
    assert not (tmp_path / "out").exists()


def test_the_embedded_id_is_the_hash_of_the_embedded_rows() -> None:
    snapshot = embedded_snapshot()
    assert snapshot_id_of(snapshot.instance_types, snapshot.offers) == snapshot.id


def _key(row: dict[str, str], price_kind: str) -> tuple[str, str, str, str, str]:
    return row["provider"], row["region"], row["zone"], row["instance_type"], price_kind
