"""Graphs on disk: what is saved loads equal, and no file, however hostile, does more than raise a sentence."""

from __future__ import annotations

import hashlib
import io
import random
import tracemalloc
import zipfile

import numpy as np
import pytest
from strategies import samples

import minigraph as mg
from minigraph.errors import MinigraphError, ParseError
from minigraph.files import FileError, load, save
from minigraph.ir import Builder
from minigraph.text import constants


def big_graph() -> mg.Graph:
    builder = Builder()
    w = builder.const(np.arange(60, dtype=np.float32).reshape(3, 20), name="w")
    builder.const(np.arange(40, dtype=np.int8), name="v")
    x = builder.input("x", "f32[2,3]")
    return builder.build({"y": builder.emit("matmul", x, w, origin=("model.py:3",))})


@pytest.fixture
def saved(tmp_path):
    save(big_graph(), tmp_path / "g.mg")
    return tmp_path / "g.mg"


# ---- round trips ----------------------------------------------------------------------------------------------------


def test_random_graphs_load_equal(tmp_path):
    tables = 0
    for number, (graph, _) in enumerate(samples(150, "files")):
        path = tmp_path / f"{number}.mg"
        save(graph, path)
        assert load(path) == graph
        tables += path.with_suffix(".npz").exists()
        assert path.with_suffix(".npz").exists() == bool(constants(graph))
    assert 10 < tables < 140


def test_what_is_saved_is_the_same_bytes(tmp_path):
    for name in "ab":
        save(big_graph(), tmp_path / f"{name}.mg")
    assert (tmp_path / "a.mg").read_bytes() == (tmp_path / "b.mg").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.npz") as a, zipfile.ZipFile(tmp_path / "b.npz") as b:
        assert a.namelist() == b.namelist() and all(a.read(name) == b.read(name) for name in a.namelist())


def test_origins_are_saved_or_not(tmp_path):
    save(big_graph(), tmp_path / "g.mg")
    assert load(tmp_path / "g.mg")["matmul"].origin == ("model.py:3",)
    save(big_graph(), tmp_path / "g.mg", origins=False)
    assert load(tmp_path / "g.mg")["matmul"].origin == ()


def test_a_text_of_another_system(tmp_path):
    """A byte order mark and Windows line ends."""
    text = "graph g(x: f32[]) -> (y) {\n  y = neg(x) : f32[]\n  return y = y\n}\n"
    (tmp_path / "g.mg").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert str(load(str(tmp_path / "g.mg"))) == text


def test_loaded_constants_cannot_be_written_to(saved):
    with pytest.raises(ValueError):
        load(saved)["w"].value.array[...] = 0


# ---- texts that are none ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("content", "kind", "sentence"), [
    (b"", ParseError, "g.mg:1:1: expected 'graph', found the end of the text"),
    (b"graph g() -> ()\n{ \xff }", FileError, "g.mg:2: byte 18 is not UTF-8 text"),
    ("graph g() -> () { return }".encode("utf-16"), FileError, "not UTF-8"),
    (b"\x00" * 1000, ParseError, "expected 'graph'"),
    (b"PK\x03\x04", ParseError, "expected 'graph'"),
    (b"graph g() -> (y) {\n y = const(@00000000000000000000000000000000)\n return y\n}", ParseError, "g.mg:2:12: the constant @0000"),
])  # fmt: skip
def test_what_is_no_text_is_a_sentence(tmp_path, content, kind, sentence):
    (tmp_path / "g.mg").write_bytes(content)
    with pytest.raises(kind) as caught:
        load(tmp_path / "g.mg")
    assert sentence in str(caught.value)


def test_what_is_no_file_is_a_sentence(tmp_path):
    with pytest.raises(FileError, match="No such file"):
        load(tmp_path / "missing.mg")
    with pytest.raises(FileError, match="directory|denied"):
        load(tmp_path)
    with pytest.raises(MinigraphError):
        save(big_graph(), tmp_path / "no" / "such" / "folder.mg")
    with pytest.raises(FileError, match="call it graph.mg"):  # the constants would overwrite the text
        save(big_graph(), tmp_path / "graph.npz")
    assert not (tmp_path / "graph.npz").exists()


# ---- tables that are hostile ------------------------------------------------------------------------------------------


def archive(compression=zipfile.ZIP_STORED, **members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as out:
        for name, data in members.items():
            out.writestr(f"{name}.npy", data)
    return stream.getvalue()


def npy(header: str, body: bytes = b"", version=b"\x01\x00") -> bytes:
    """A .npy file with any header at all."""
    width = 2 if version == b"\x01\x00" else 4
    return b"\x93NUMPY" + version + len(header).to_bytes(width, "little") + header.encode("latin1") + body


def array_bytes(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def named(shape: tuple) -> str:
    """The digest that a constant of zeros of any shape at all would have."""
    size = 4 * int(np.prod(shape, dtype=object))
    return hashlib.blake2b(str(mg.Type("f32", shape)).encode() + bytes(size), digest_size=16).hexdigest()


W = np.arange(60, dtype=np.float32).reshape(3, 20)
W_DIGEST = next(digest for digest, const in constants(big_graph()).items() if const.dtype == "f32")
HEADER = "{'descr': '%s', 'fortran_order': %s, 'shape': %s}\n"
HOSTILE = {
    "empty": b"",
    "not a zip": b"hello" * 100,
    "a half zip": archive(a=array_bytes(W))[:200],
    "compressed": archive(zipfile.ZIP_DEFLATED, **{W_DIGEST: array_bytes(W)}),
    "a bomb": archive(zipfile.ZIP_DEFLATED, **{W_DIGEST: array_bytes(np.zeros(30_000_000, np.float32))}),
    "another compression": archive(zipfile.ZIP_LZMA, **{W_DIGEST: array_bytes(W)}),
    "pickled objects": archive(**{W_DIGEST: array_bytes(np.array([print, 1], object))}),
    "a dtype that we lack": archive(**{W_DIGEST: array_bytes(W.astype(np.complex64))}),
    "strings": archive(**{W_DIGEST: array_bytes(np.array(["a", "b"]))}),
    "fields": archive(**{W_DIGEST: array_bytes(np.zeros(3, [("a", "f4"), ("b", "i4")]))}),
    "big endian": archive(**{W_DIGEST: array_bytes(W.astype(">f4"))}),
    "column order": archive(**{W_DIGEST: array_bytes(np.asfortranarray(W))}),
    "wrong bytes": archive(**{W_DIGEST: array_bytes(W + 1)}),
    "wrong name": archive(**{"0" * 32: array_bytes(W)}),
    "no array": archive(**{W_DIGEST: b"not an array"}),
    "no content": archive(**{W_DIGEST: b""}),
    "a huge shape": archive(**{W_DIGEST: npy(HEADER % ("<f4", False, (2**40, 2**20)), b"\0" * 240)}),
    "an impossible shape": archive(**{W_DIGEST: npy(HEADER % ("<f4", False, (10**30,)), b"\0" * 240)}),
    "a negative shape": archive(**{W_DIGEST: npy(HEADER % ("<f4", False, (-1, -60)), b"\0" * 240)}),
    "a shape of strings": archive(**{W_DIGEST: npy(HEADER % ("<f4", False, ("'a'", 1)), b"\0" * 240)}),
    **{f"a shape that no array has, {why}": archive(**{named(shape): npy(HEADER % ("<f4", False, shape), bytes(size))})
       for why, shape, size in (("huge", (0, 2**70), 0), ("65 axes", (1,) * 65, 4), ("bools", (True, 2), 8))},
    "too few bytes": archive(**{W_DIGEST: npy(HEADER % ("<f4", False, (3, 20)), b"\0" * 10)}),
    "too many bytes": archive(**{W_DIGEST: npy(HEADER % ("<f4", False, (3, 20)), b"\0" * 999)}),
    "code in the header": archive(**{W_DIGEST: npy("__import__('os').system('echo hacked')")}),
    "a broken header": archive(**{W_DIGEST: npy("{'descr': ")}),
    "a header without keys": archive(**{W_DIGEST: npy("{}\n")}),
    "a deep header": archive(**{W_DIGEST: npy("(" * 60_000)}),
    "a long header": archive(**{W_DIGEST: npy(" " * 3_000_000, version=b"\x02\x00")}),
    "a number too long": archive(**{W_DIGEST: npy("9" * 60_000)}),
    "version 3": archive(**{W_DIGEST: npy(HEADER % ("<f4", False, (3, 20)), W.tobytes(), b"\x03\x00")}),
    "version 9": archive(**{W_DIGEST: npy(HEADER % ("<f4", False, (3, 20)), W.tobytes(), b"\x09\x00")}),
    "one that is fine, without the other": archive(**{W_DIGEST: array_bytes(W)}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_table_is_a_sentence(saved, name):
    saved.with_suffix(".npz").write_bytes(HOSTILE[name])
    tracemalloc.start()
    with pytest.raises((FileError, ParseError)) as caught:
        load(saved)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "g.npz" in str(caught.value) or "is not in the side table" in str(caught.value)
    assert len(str(caught.value)) < 1000
    assert peak < 20_000_000, "it allocates what the file does not hold"


def test_damaged_tables_raise_nothing_but_sentences(saved):
    rng, table = random.Random(0), saved.with_suffix(".npz")
    good, refused = table.read_bytes(), 0
    for _ in range(400):
        data = bytearray(good)
        for _ in range(rng.choice((1, 3, 20))):
            data[rng.randrange(len(data))] = rng.randrange(256)
        table.write_bytes(data[:rng.randrange(len(data))] if rng.random() < 0.3 else data)
        try:
            assert load(saved) == big_graph()  # a byte that nobody reads
        except MinigraphError:
            refused += 1
    assert refused > 300
