"""The whole build on the facts of the repository, against the embedded files."""

import csv
import shutil
from collections import Counter
from pathlib import Path

import pytest

from gpuplan.catalog.model.data_tables import data_table
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot
from gpuplan.catalog.snapshots.snapshot import snapshot_id_of
from tools.catalogue_build.__main__ import main
from tools.catalogue_build.fact_tables import FACTS, fact_table, mapping_table

REPOSITORY = Path(__file__).parents[3]


def test_a_rebuild_gives_the_embedded_files_byte_for_byte(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--out", str(tmp_path)]) == 0
    written = sorted(path.name for path in tmp_path.iterdir())
    assert len(written) == 8
    for name in written:
        assert (tmp_path / name).read_bytes() == (REPOSITORY / "catalog" / "data" / name).read_bytes(), name
    assert "  8,852  rows read" in capsys.readouterr().out


def test_every_price_row_is_offered_or_set_aside_by_name() -> None:
    listed = fact_table("listed_prices")
    kinds = {row["source_kind"]: row["price_kind"] for row in mapping_table("price_kinds")}
    offered = {offer.key for offer in embedded_snapshot().offers}
    with (REPOSITORY / "catalog" / "data" / "quarantine.csv").open(encoding="utf-8", newline="") as file:
        aside = {_key(row, row["price_kind"]) for row in csv.DictReader(file)}
    per_chip = {row["priced_from"] for row in data_table("tpu_slices.csv")}
    fates = Counter(
        "set aside"
        if _key(row, kinds[row["listed_price_kind"]]) in aside
        else "chip"
        if row["instance_type"] in per_chip
        else "offered"
        if _key(row, kinds[row["listed_price_kind"]]) in offered
        else "lost"
        for row in listed
    )
    assert fates == {"offered": 8592, "set aside": 121, "chip": 139}


def test_missing_facts_are_said_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--facts", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "--facts" in message
    assert not (tmp_path / "out").exists()


def test_a_damaged_fact_table_is_said_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(shutil.copytree(FACTS, tmp_path / "facts"))
    whole = (folder / "listed_prices.csv.xz").read_bytes()
    (folder / "listed_prices.csv.xz").write_bytes(whole[: len(whole) // 2])
    assert main(["--facts", str(folder), "--out", str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err.startswith("refused: a fact table is damaged: ")
    assert not (tmp_path / "out").exists()


def test_the_embedded_id_is_the_hash_of_the_embedded_rows() -> None:
    snapshot = embedded_snapshot()
    assert snapshot_id_of(snapshot.instance_types, snapshot.offers) == snapshot.id


def _key(row: dict[str, str], price_kind: str) -> tuple[str, str, str, str, str]:
    return row["provider"], row["region"], row["zone"], row["instance_type"], price_kind
