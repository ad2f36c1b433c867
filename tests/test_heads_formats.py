"""Files of heads: every format is read exactly, and a file that lies or hides code is refused."""

import json
import pickle
import zipfile

import ml_dtypes
import numpy as np
import pytest

from capmem import heads
from capmem.heads import files, tensor_file
from capmem.heads.widen import widen
from tests.conftest import ROOT

PARTS = ("keys", "queries", "values")
PATTERNS = np.arange(2**16, dtype=np.uint16)


def write_tensors(path, entries, data, raw_header=None, length=None):
    """Write a safetensors file from its header as a dict (or as bytes) and its data, truthful or not."""
    header = json.dumps(entries).encode() if raw_header is None else raw_header
    path.write_bytes((len(header) if length is None else length).to_bytes(8, "little") + header + data)
    return path


def entry(dtype="F32", shape=(2, 3), offsets=(0, 24)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


@pytest.fixture
def arrays(rng):
    return {part: rng.standard_normal((3, 8, 4)).astype(np.float32) for part in PARTS}


def same(loaded, arrays):
    layer = loaded.layer(0)
    for part in PARTS:
        np.testing.assert_array_equal(getattr(layer, part), arrays[part])
        assert getattr(layer, part).dtype == arrays[part].dtype


# numbers


def test_bfloat16_is_widened_by_its_definition_for_every_pattern():
    sign, exponent, fraction = PATTERNS >> 15, (PATTERNS >> 7 & 255).astype(int), (PATTERNS & 127) / 128
    size = np.where(exponent == 0, fraction * 2.0**-126, (1 + fraction) * 2.0 ** np.minimum(exponent - 127.0, 127))
    size = np.where(exponent == 255, np.where(fraction == 0, np.inf, np.nan), size)
    wide = widen(PATTERNS, "bfloat16")
    assert wide.dtype == np.float32
    with np.errstate(invalid="ignore"):  # a signalling nan
        made = wide.astype(float)
    np.testing.assert_array_equal(made, np.where(sign == 1, -size, size))
    assert (wide[PATTERNS == 1] == 2.0**-133).all()  # a subnormal float32, not flushed to 0


def test_bfloat16_keeps_every_bit():
    bits = widen(PATTERNS, "bfloat16").view(np.uint32)
    np.testing.assert_array_equal(bits, PATTERNS.astype(np.uint32) << 16)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("bfloat16", ml_dtypes.bfloat16),
        ("float16", np.float16),
        ("float8_e4m3", ml_dtypes.float8_e4m3fn),
        ("float8_e5m2", ml_dtypes.float8_e5m2),
    ],
)
def test_narrow_formats_are_widened_as_others_do(name, dtype):
    width = np.dtype(dtype).itemsize
    patterns = np.arange(2 ** (8 * width), dtype=f"u{width}")
    np.testing.assert_array_equal(widen(patterns, name), patterns.view(dtype).astype(np.float32))


def test_float64_is_not_narrowed(tmp_path, rng):
    keys = rng.standard_normal((5, 3))
    np.savez(tmp_path / "a.npz", keys=keys)
    np.testing.assert_array_equal(heads.load(tmp_path / "a.npz").layer(0).keys[0], keys)


# round trips


def test_npz_is_read(tmp_path, arrays):
    np.savez_compressed(tmp_path / "a.npz", **arrays)
    same(heads.load(tmp_path / "a.npz", layout="htd"), arrays)


def test_big_endian_and_fortran_arrays_are_read(tmp_path, arrays):
    np.savez(tmp_path / "a.npz", **{part: np.asfortranarray(x.astype(">f4")) for part, x in arrays.items()})
    loaded = heads.load(tmp_path / "a.npz", layout="htd")
    same(loaded, arrays)
    assert loaded.metadata.dtype == "float32"


def test_npy_holds_keys(tmp_path, arrays):
    np.save(tmp_path / "a.npy", arrays["keys"].astype(np.float16))
    loaded = heads.load(tmp_path / "a.npy", layout="htd")
    np.testing.assert_array_equal(loaded.layer(0).keys, arrays["keys"].astype(np.float16).astype(np.float32))
    assert loaded.metadata.dtype == "float16"


@pytest.mark.parametrize(
    ("code", "dtype"), [("F32", np.float32), ("F16", np.float16), ("BF16", ml_dtypes.bfloat16), ("F64", float)]
)
def test_safetensors_are_read_in_every_float_format(tmp_path, arrays, code, dtype):
    held = {part: x.astype(dtype) for part, x in arrays.items()}
    entries, data = {"__metadata__": {"format": "pt"}}, b""
    for part, x in held.items():
        entries[part] = entry(code, x.shape, (len(data), len(data) + x.nbytes))
        data += x.tobytes()
    loaded = heads.load(write_tensors(tmp_path / "a.safetensors", entries, data), layout="htd")
    wide = np.float64 if code == "F64" else np.float32
    same(loaded, {part: x.astype(wide) for part, x in held.items()})
    assert loaded.metadata.dtype == np.dtype(dtype).name


def test_bfloat16_saved_by_numpy_has_to_be_named(tmp_path, arrays):
    np.savez(tmp_path / "a.npz", keys=arrays["keys"].astype(ml_dtypes.bfloat16))
    with pytest.raises(ValueError, match="dtype='bfloat16'"):
        heads.load(tmp_path / "a.npz", layout="htd")
    loaded = heads.load(tmp_path / "a.npz", layout="htd", dtype="bfloat16")
    np.testing.assert_array_equal(loaded.layer(0).keys, arrays["keys"].astype(ml_dtypes.bfloat16).astype(np.float32))
    assert loaded.metadata.dtype == "bfloat16"


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_what_is_saved_is_read_back_identically(tmp_path, rng, suffix):
    keys, queries = rng.standard_normal((2, 6, 4)), rng.standard_normal((4, 6, 4)).astype(np.float32)
    values = {3: rng.standard_normal((2, 6, 5)), 11: rng.standard_normal((2, 6, 5))}
    said = {"model": "é", "licence": "x", "scale": 0.3, "causal": True, "rotary": "before", "dtype": None}
    told = {"tokens": list("abcde\x00"), "ids": [5, 4, 3, 2, 1, 2**40], "special": [1, 0, 0, 0, 0, 0]}
    made = heads.from_arrays({3: keys, 11: keys + 1}, {3: queries, 11: queries}, values, layout="htd", **said, **told)
    made.save(tmp_path / f"a{suffix}")
    back = heads.load(tmp_path / f"a{suffix}")
    assert back.metadata == made.metadata
    assert back.metadata.ids[-1] == 2**40
    assert back.layers == (3, 11)
    for index in (3, 11):
        one, two = back.layer(index), made.layer(index)
        assert (one.key_heads, one.query_heads) == (two.key_heads, two.query_heads)
        for part in PARTS:
            np.testing.assert_array_equal(getattr(one, part), getattr(two, part), strict=True)
    with pytest.raises(ValueError, match="nothing is overwritten"):
        made.save(tmp_path / f"a{suffix}")
    with pytest.raises(ValueError, match="says all itself"):
        heads.load(tmp_path / f"a{suffix}", layout="htd")


def test_head_numbers_survive_saving(tmp_path, rng):
    for part in PARTS:
        np.savez(tmp_path / f"{part}.npz", **{f"layer4_head{h}": rng.standard_normal((6, 3)) for h in (2, 10, 7)})
    made = heads.load(tmp_path)
    assert [head.head for head in made.each()] == [2, 7, 10]
    made.save(tmp_path / "b.safetensors")
    assert [head.head for head in heads.load(tmp_path / "b.safetensors").each()] == [2, 7, 10]


def test_a_saved_file_that_is_damaged_is_refused(tmp_path, arrays):
    heads.from_arrays(**arrays, layout="htd").save(tmp_path / "a.npz")
    held = dict(np.load(tmp_path / "a.npz"))
    del held["layers.0.keys"]
    np.savez(tmp_path / "b.npz", **held)
    with pytest.raises(ValueError, match="keys of layer 0 are missing"):
        heads.load(tmp_path / "b.npz")
    held["capmem_metadata"] = np.frombuffer(b"{}", np.uint8)
    np.savez(tmp_path / "c.npz", **held)
    with pytest.raises(ValueError, match="damaged"):
        heads.load(tmp_path / "c.npz")


# folders


def test_layer_2_comes_before_layer_10(tmp_path, arrays):
    for layer in (10, 2, 1):
        np.savez(tmp_path / f"layer{layer}.npz", **{part: x + layer for part, x in arrays.items()})
    loaded = heads.load(tmp_path, layout="htd")
    assert loaded.layers == (1, 2, 10)
    np.testing.assert_array_equal(loaded.layer(10).keys, arrays["keys"] + np.float32(10))
    assert sorted(["a10", "a2"], key=files.natural) == ["a2", "a10"]


def test_the_sample_is_read_with_its_tokens():
    loaded = heads.load(ROOT / "samples/minilm")
    assert [(head.layer, head.head) for head in loaded.each()] == [(i, h) for i in (1, 3) for h in (0, 5, 9)]
    assert loaded.metadata.tokens[0] == "[CLS]" and len(loaded.metadata.tokens) == 256
    held = np.load(ROOT / "samples/minilm/values.npz")
    for head in loaded.each():
        np.testing.assert_array_equal(head.values, held[f"layer{head.layer}_head{head.head}"])


def test_layers_are_read_one_at_a_time(tmp_path, arrays, monkeypatch):
    for layer in range(3):
        np.savez(tmp_path / f"layer{layer}.npz", **arrays)
    loaded = heads.load(tmp_path, layout="htd")
    (tmp_path / "layer2.npz").unlink()
    np.testing.assert_array_equal(loaded.layer(1).keys, arrays["keys"])
    with pytest.raises(ValueError, match="layer2"):
        loaded.layer(2)


# refusals


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("unpickled",))


def test_nothing_is_unpickled(tmp_path):
    objects = np.array([Bomb()], dtype=object)
    np.save(tmp_path / "a.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "a.npz", keys=objects)
    (tmp_path / "b.npy").write_bytes(pickle.dumps(Bomb()))
    (tmp_path / "b.npz").write_bytes(pickle.dumps(Bomb()))
    with zipfile.ZipFile(tmp_path / "c.npz", "w") as archive:
        archive.writestr("keys.npy", pickle.dumps(Bomb()))
    for name in ("a.npy", "a.npz", "b.npy", "b.npz", "c.npz"):
        with pytest.raises(ValueError, match="nothing is ever unpickled"):
            heads.load(tmp_path / name)


LIES = {
    "an offset beyond the file": ({"k": entry(shape=(2, 4), offsets=(0, 32))}, "holds 24"),
    "offsets that overlap": ({"k": entry(), "v": entry(offsets=(20, 44), shape=(2, 3))}, "overlaps"),
    "a gap": ({"k": entry(shape=(1, 2), offsets=(16, 24))}, "gap"),
    "bytes that nothing describes": ({"k": entry(shape=(1, 2), offsets=(0, 8))}, "holds 24"),
    "a shape of another size": ({"k": entry(shape=(2, 4))}, "needs 32 bytes, it has 24"),
    "a dtype of another size": ({"k": entry(dtype="F16")}, "needs 12 bytes"),
    "a negative size": ({"k": entry(shape=(-2, -3))}, "not sizes"),
    "offsets in the wrong order": ({"k": entry(offsets=(24, 0))}, "not sizes"),
    "a size that is no integer": ({"k": entry(shape=(2.0, 3))}, "not sizes"),
    "a size that is a truth value": ({"k": entry(shape=(True, 6))}, "not sizes"),
    "three offsets": ({"k": entry(offsets=(0, 12, 24))}, "not sizes"),
    "a huge shape": ({"k": entry(shape=(2**40, 2**40))}, "needs"),
    "an unknown dtype": ({"k": entry(dtype="F4")}, "dtype 'F4'"),
    "an entry without a shape": ({"k": {"dtype": "F32", "data_offsets": [0, 24]}}, "must have"),
    "an entry that is a number": ({"k": 3}, "must have"),
    "metadata that is no text": ({"__metadata__": {"a": 1}, "k": entry()}, "__metadata__"),
}


@pytest.mark.parametrize(("entries", "message"), LIES.values(), ids=LIES)
def test_a_header_that_lies_is_refused(tmp_path, entries, message):
    with pytest.raises(ValueError, match=message):
        heads.load(write_tensors(tmp_path / "a.safetensors", entries, bytes(24)))


RAW = {
    "a name that stands twice": b'{"k": %b, "k": %b}' % ((json.dumps(entry()).encode(),) * 2),
    "no JSON": b"\x00\x01\x02",
    "no UTF-8": b'{"\xff": 1}',
    "no object": b"[]",
    "nesting without end": b"[" * 100_000,
}


@pytest.mark.parametrize("header", RAW.values(), ids=RAW)
def test_a_header_that_is_not_valid_is_refused(tmp_path, header):
    with pytest.raises(ValueError, match="header"):
        heads.load(write_tensors(tmp_path / "a.safetensors", None, bytes(24), header))


@pytest.mark.parametrize("length", [10**6, 2**63, 2**64 - 1, tensor_file.MAX_HEADER + 1])
def test_a_header_longer_than_the_file_is_refused(tmp_path, length):
    with pytest.raises(ValueError, match=f"header is said to have {length} bytes"):
        heads.load(write_tensors(tmp_path / "a.safetensors", {"k": entry()}, bytes(24), length=length))


def test_an_empty_file_is_refused(tmp_path):
    for suffix in (".safetensors", ".npy", ".npz"):
        (tmp_path / f"a{suffix}").touch()
        with pytest.raises(ValueError, match=f"a{suffix}"):
            heads.load(tmp_path / f"a{suffix}")


def test_a_truthful_header_passes(tmp_path):
    data = np.arange(6, dtype=np.float32)
    loaded = heads.load(write_tensors(tmp_path / "a.safetensors", {"k": entry()}, data.tobytes()))
    np.testing.assert_array_equal(loaded.layer(0).keys[0], data.reshape(2, 3))


def test_other_files_and_missing_ones_are_refused(tmp_path):
    with pytest.raises(ValueError, match="does not exist"):
        heads.load(tmp_path / "none.npz")
    (tmp_path / "a.csv").touch()
    with pytest.raises(ValueError, match=r"'\.csv' does not exist"):
        heads.load(tmp_path / "a.csv")
    with pytest.raises(ValueError, match="no file of a known kind"):
        heads.load(tmp_path)
