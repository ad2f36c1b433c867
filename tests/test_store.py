"""Stored units come back as they were; what cannot be trusted is refused by name."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from capmem import parts, store

UNIT = {"point": "a", "trial": 0, "num_pairs": 8, "status": "ok", "scale_optimal_error": 0.25, "keys": "sphere"}


def test_what_was_written_is_read(tmp_path):
    other = UNIT | {"point": "b", "keys.correlation": 0.3, "feature_map.nu": None}
    store.write_part(tmp_path, [UNIT])
    store.write_part(tmp_path, [other])
    frame = store.read(tmp_path).set_index("point")
    assert frame["keys.correlation"].isna().to_dict() == {"a": True, "b": False}
    assert frame["keys.correlation"]["b"] == 0.3
    assert frame["scale_optimal_error"].tolist() == [0.25, 0.25]
    assert store.finished(tmp_path) == {("a", 0, 8): "ok", ("b", 0, 8): "ok"}


def test_floats_come_back_bit_for_bit(tmp_path, rng):
    values = rng.standard_normal(50)
    store.write_part(tmp_path, [UNIT | {"trial": t, "x": float(v)} for t, v in enumerate(values)])
    np.testing.assert_array_equal(store.read(tmp_path)["x"].to_numpy(), values)


def test_a_success_counts_over_an_earlier_failure(tmp_path):
    store.write_part(tmp_path, [UNIT | {"status": "failed", "scale_optimal_error": None}])
    store.write_part(tmp_path, [UNIT])
    assert store.read(tmp_path)["status"].tolist() == ["ok"]
    assert store.finished(tmp_path) == {("a", 0, 8): "ok"}


def test_mixed_settings_are_kept_as_text(tmp_path):
    store.write_part(tmp_path, [UNIT | {"key_scale": 1.0}, UNIT | {"point": "b", "key_scale": "sqrt_dim"}])
    assert store.read(tmp_path)["key_scale"].tolist() == ["1.0", "sqrt_dim"]


def test_no_part_is_left_half_written(tmp_path, monkeypatch):
    def fail(table, path, **options):
        path.write_bytes(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr(pq, "write_table", fail)
    with pytest.raises(store.StoreError, match="No space left on device"):
        store.write_part(tmp_path, [UNIT])
    assert list((tmp_path / store.PARTS).iterdir()) == []


def test_a_damaged_part_is_named(tmp_path):
    path = store.write_part(tmp_path, [UNIT])
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(store.StoreError, match=path.name):
        store.read(tmp_path)


def test_other_numerics_are_refused(tmp_path, monkeypatch):
    store.write_part(tmp_path, [UNIT])
    monkeypatch.setattr(parts, "NUMERICS", parts.NUMERICS + 1)
    with pytest.raises(store.StoreError, match="cannot stand in one table"):
        store.read(tmp_path)


def test_a_folder_without_results_is_named(tmp_path):
    with pytest.raises(store.StoreError, match="holds no results"):
        store.read(tmp_path)


def test_parts_are_written_less_and_less_often(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(store.time, "monotonic", lambda: now[0])
    writer = store.PartWriter(tmp_path)
    for second in range(60):
        now[0] = float(second)
        writer.add([UNIT | {"trial": second}])
    writer.flush()
    parts = store.part_files(tmp_path)
    assert 5 <= len(parts) <= 12
    assert len(store.read(tmp_path)) == 60
