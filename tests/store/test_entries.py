import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from safetensors.numpy import save_file

from attrcheck.store.entries import (
    IGNORED,
    BusyError,
    Entry,
    Store,
    StoreError,
    StoreWarning,
    VerificationError,
    fingerprint,
    read_head,
)

NAME, KEY = "records/tiny-linear-morf/gradient", {"method": "0123456789abcdef", "seed": "0"}
FILE = f"{NAME}-{fingerprint(KEY)}.safetensors"
# Larger than what numpy prints in full, with a last bit that it rounds away.
ENTRY = Entry(
    {"correct": np.arange(12).reshape(3, 4) % 2 == 0, "logit": np.linspace(0, 1, 3000)},
    {"seconds": 0.1, "constant": 2},
)


def never():
    raise AssertionError("should have been found in the store")


@pytest.fixture
def store(tmp_path):
    """An open store."""
    store = Store(tmp_path / "store", run="this-run")
    store.open()
    return store


@pytest.fixture
def path(store):
    """The file of a written entry."""
    store.obtain(NAME, KEY, lambda: ENTRY)
    return store.folder / FILE


@pytest.fixture
def obtain(store, same_arrays):
    """Obtain the entry, which must be right; returns how often it was computed."""

    def obtain(name=NAME, key=KEY, store=store):
        computed = []

        def compute():
            computed.append(1)
            return ENTRY

        entry = store.obtain(name, key, compute)
        assert same_arrays(entry.arrays, ENTRY.arrays)
        assert entry.info == ENTRY.info
        return len(computed)

    return obtain


def left(folder, pattern="**/*"):
    """Files that are not entries."""
    found = (path for path in Path(folder).glob(pattern) if path.is_file())
    return [path.name for path in found if path.suffix != ".safetensors" and path.name != IGNORED]


def test_an_entry_is_computed_once(store, obtain):
    assert [obtain(), obtain(), obtain()] == [1, 0, 0]
    assert obtain(store=Store(store.folder, run="another-run")) == 0
    assert store.problems == []


def test_other_names_and_keys_are_other_entries(obtain):
    assert obtain() == 1
    assert obtain(name=NAME + "2") == 1
    assert obtain(key=KEY | {"seed": "1"}) == 1
    assert obtain(key=KEY | {"images": "8"}) == 1
    assert obtain() == 0


def test_the_order_of_a_keys_parts_does_not_matter(obtain):
    assert [obtain(), obtain(key=dict(reversed(KEY.items())))] == [1, 0]


def test_an_entry_is_one_file_named_after_name_and_key(store, obtain):
    obtain()
    assert (store.folder / FILE).is_file()
    assert left(store.folder) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.sampled_from(["bool", "int64", "float32", "float64", "uint8"]).flatmap(
        lambda dtype: arrays(
            dtype, array_shapes(min_dims=0, max_dims=3, max_side=4) | st.just((0, 3))
        )
    ),
    info=st.dictionaries(
        st.text(), st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False)
    ),
)
def test_whatever_is_written_is_read_back_bit_for_bit(tmp_path, same_arrays, values, info):
    entry = Entry({"rows": values, "turned": values.T}, info)
    store = Store(tmp_path, run="this-run", fresh=False)
    store.path("k", KEY).unlink(missing_ok=True)
    store.obtain("k", KEY, lambda: entry)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = store.obtain("k", KEY, never)
    assert same_arrays(again.arrays, {"rows": values, "turned": values.T})
    assert again.info == info


def test_reading_does_not_depend_on_how_arrays_are_printed(path, obtain):
    with np.printoptions(precision=2, threshold=5), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert obtain() == 0


def header(path):
    """The JSON header of a safetensors file, and the bytes after it."""
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    return json.loads(raw[8 : 8 + size]), raw[8 + size :]


def truncate(path):
    path.write_bytes(path.read_bytes()[:-100])


def empty(path):
    path.write_bytes(b"")


def text(path):
    path.write_text("not an entry at all")


def foreign(path):
    save_file({"weight": np.ones(3)}, path)


def foreign_with_our_name(path):
    save_file({"weight": np.ones(3)}, path, {"attrcheck": "[1, 2]"})


def misplaced(path):
    store, name = Store(path.parents[2]), "records/tiny-linear-morf/other"
    store.obtain(name, KEY, lambda: ENTRY)
    store.path(name, KEY).rename(path)


def of_another_key(path):
    rewrite(path, key={**KEY, "seed": "1"})


def outdated(path):
    rewrite(path, schema=0)


def without_digest(path):
    rewrite(path, digest=None)


def without_facts(path):
    rewrite(path, facts=None)


def other_info(path):
    facts = read_head(path)["facts"]
    rewrite(path, facts={**facts, "info": {"seconds": 99.0, "constant": 2}})


def other_origin(path):
    rewrite(path, facts={**read_head(path)["facts"], "created": "yesterday"})


def flipped(path):
    raw = bytearray(path.read_bytes())
    raw[-12_000] ^= 1  # the last bit of a number in the middle of `logit`
    path.write_bytes(raw)


def rewrite(path, **changes):
    """Change the head of an entry; None takes a part away."""
    head, data = header(path)
    ours = {**json.loads(head["__metadata__"]["attrcheck"]), **changes}
    ours = {name: value for name, value in ours.items() if value is not None}
    head["__metadata__"]["attrcheck"] = json.dumps(ours)
    text = json.dumps(head).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def deep(path):
    rewrite_raw(path, "[" * 100_000)


def null_head(path):
    rewrite_raw(path, "null")


def without_metadata(path):
    raw = json.dumps({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    path.write_bytes(len(raw).to_bytes(8, "little") + raw + bytes(4))


def unknown_dtype(path):
    head, data = header(path)
    head["logit"]["dtype"] = "F7"
    text = json.dumps(head).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def odd_facts(path):
    rewrite(path, facts=[])


def huge_head(path):
    with path.open("wb") as file:
        file.write((2**40).to_bytes(8, "little"))
        file.truncate(2**32)  # four gigabytes that take no room


def rewrite_raw(path, text):
    """Put any text in the place of the head."""
    head, data = header(path)
    head["__metadata__"]["attrcheck"] = text
    raw = json.dumps(head).encode()
    path.write_bytes(len(raw).to_bytes(8, "little") + raw + data)


DAMAGES = [
    deep,
    null_head,
    without_metadata,
    unknown_dtype,
    odd_facts,
    truncate,
    empty,
    text,
    foreign,
    foreign_with_our_name,
    misplaced,
    of_another_key,
    outdated,
    without_digest,
    without_facts,
    other_info,
    other_origin,
    flipped,
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_file_that_is_no_longer_right_is_named_set_aside_and_computed_again(
    store, path, obtain, damage
):
    damage(path)
    damaged = path.read_bytes()
    with pytest.warns(StoreWarning, match=str(path)):
        assert obtain() == 1
    assert [kept.read_bytes() for kept in (store.folder / "aside").iterdir()] == [damaged]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert obtain() == 0


def test_a_file_of_many_gigabytes_is_set_aside_at_once(store, path, obtain):
    huge_head(path)
    started = time.monotonic()
    with pytest.warns(StoreWarning, match="not a safetensors file"):
        assert obtain() == 1
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("kind", ["pipe", "folder", "link out of the store", "dangling link"])
def test_what_is_not_a_file_is_not_read(store, path, obtain, tmp_path, kind):
    """Nothing hangs on it, and it costs the entry's file at most."""
    outside = tmp_path / "outside.safetensors"
    outside.write_bytes(path.read_bytes())
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(outside if kind.startswith("link") else tmp_path / "nowhere")
    before = outside.read_bytes()
    assert obtain() == 1
    assert outside.read_bytes() == before


@pytest.mark.parametrize("code", [errno.EMFILE, errno.EIO, errno.ESTALE])
def test_a_file_that_cannot_be_read_for_now_is_tried_again_and_kept(
    store, path, obtain, monkeypatch, code
):
    read, failures = Path.read_bytes, [1, 1]

    def sometimes(self):
        if self == path and failures:
            failures.pop()
            raise OSError(code, os.strerror(code))
        return read(self)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", sometimes)
        assert obtain() == 0
        failures.extend([1] * 10)
        patch.setattr("attrcheck.store.files.PAUSES", (0, 0))
        with pytest.warns(StoreWarning, match=os.strerror(code)):
            assert obtain() == 1
    assert not (store.folder / "aside").exists()
    assert obtain() == 0


def test_no_single_flipped_byte_goes_unnoticed(store, path, same_arrays):
    """Wherever it is: the entry is read as it was, or set aside; never read as something else."""
    whole = path.read_bytes()
    size = len(whole)
    for at in [*range(0, size - 24_012, 3), *range(size - 24_012, size, 997)]:
        raw = bytearray(whole)
        raw[at] ^= 1
        path.write_bytes(raw)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            entry = store._read(path, NAME, KEY)
        if entry is not None:
            assert same_arrays(entry.arrays, ENTRY.arrays), at
            assert entry.info == ENTRY.info, at


def test_a_damaged_file_is_gone_even_where_warnings_are_errors(path, obtain):
    text(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(StoreWarning):
            obtain()
        assert obtain() == 1


def test_a_damaged_file_that_another_worker_set_aside_first_is_no_problem(store, path, obtain):
    """Both read it, both found it damaged, the other one was faster."""
    text(path)
    rename = Path.replace

    def too_late(self, target):
        if self == path:
            rename(self, self.with_name("moved-by-the-other"))
        return rename(self, target)

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(Path, "replace", lambda self, target: too_late(self, target))
        store._read(path, NAME, KEY)
    assert obtain() == 1


def test_fresh_ignores_older_runs_and_reuses_this_one(store, path, obtain):
    fresh = Store(store.folder, run="next-run", fresh=True)
    assert [obtain(store=fresh), obtain(store=fresh)] == [1, 0]
    same_run = Store(store.folder, run="next-run", fresh=True)
    assert obtain(store=same_run) == 0
    assert obtain(store=Store(store.folder, run="last-run")) == 0
    assert not (store.folder / "aside").exists()


@pytest.mark.parametrize("inside", ["", "below/it"])
def test_a_folder_that_cannot_be_made_is_an_error_that_says_what_to_do(tmp_path, inside):
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / inside
    with pytest.raises(StoreError) as caught:
        Store(folder).open()
    assert str(folder) in str(caught.value)
    assert "--attr-store" in str(caught.value)


def test_an_empty_folder_that_cannot_be_written_to_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *given: False)
    with pytest.raises(StoreError, match=r"read-only and empty.*--attr-store"):
        Store(tmp_path).open()


def test_a_read_only_store_serves_what_it_holds(store, path, obtain, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *given: False)
    store.open()
    assert obtain() == 0
    path.unlink()
    with pytest.raises(StoreError, match=r"read-only and empty.*--attr-store"):
        store.open()


def test_opening_makes_the_folder_and_hides_it_from_git(tmp_path):
    Store(tmp_path / "a" / "b").open()
    Store(tmp_path / "a" / "b").open()
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == [".gitignore"]
    assert (tmp_path / "a" / "b" / ".gitignore").read_text() == "*\n"


def test_a_full_disk_costs_the_file_but_not_the_entry(store, obtain, monkeypatch):
    def full(self, target):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        assert obtain() == 1
    [problem] = store.problems
    assert FILE in problem
    assert "No space left on device" in problem
    assert "--attr-store" in problem
    assert left(store.folder) == []
    assert obtain() == 1
    assert obtain() == 0


def test_a_full_disk_leaves_an_older_entry_alone(store, path, obtain, monkeypatch):
    before = path.read_bytes()
    fresh = Store(store.folder, run="next-run", fresh=True)

    def full(self, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert obtain(store=fresh) == 1
    assert len(fresh.problems) == 1
    assert path.read_bytes() == before


def test_a_file_in_the_way_of_a_folder_costs_the_file_but_not_the_entry(store, obtain):
    (store.folder / "records").touch()
    assert obtain() == 1
    assert store.problems
    assert all(FILE in problem for problem in store.problems)


def test_a_file_in_the_way_of_the_locks_costs_no_more_than_the_lock(store, obtain):
    (store.folder / "locks").touch()
    assert obtain() == 1
    assert store.problems


def test_a_real_write_that_fails_half_way(tmp_path):
    """The system refuses to let a file grow beyond a limit, as a full disk or a quota would."""
    code = f"""
        import json, resource, sys
        from pathlib import Path
        import numpy as np
        from attrcheck.store.entries import Entry, Store
        store = Store(Path({str(tmp_path)!r}))
        store.open()
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
        entry = store.obtain("k", {{"a": "f"}}, lambda: Entry({{"rows": np.ones(1000)}}))
        assert entry.arrays["rows"].sum() == 1000
        print(*store.problems)
    """
    said = python(code)
    assert "File too large" in said
    assert str(tmp_path / "k-") in said
    assert left(tmp_path) == []
    assert list(tmp_path.glob("*.safetensors")) == []


def test_a_computation_that_raises_leaves_no_file_and_no_lock(store, obtain):
    def fail():
        raise OSError(errno.EIO, "the method's own trouble")

    with pytest.raises(OSError, match="own trouble"):
        store.obtain(NAME, KEY, fail)
    assert list(store.folder.glob("**/*.safetensors")) == []
    assert left(store.folder) == []
    assert store.problems == []
    started = time.monotonic()
    assert obtain() == 1
    assert time.monotonic() - started < 5


def test_entries_can_be_obtained_while_another_is_computed(store, obtain):
    def compute():
        assert obtain("maps/tiny-linear/gradient") == 1
        return ENTRY

    store.obtain(NAME, KEY, compute)
    assert obtain() == 0
    assert obtain("maps/tiny-linear/gradient") == 0


WORKER = """
    import os, sys, time
    from pathlib import Path
    import numpy as np
    from attrcheck.store.entries import Entry, Store
    folder = Path(sys.argv[1])
    def compute():
        (folder / f"computed-{{os.getpid()}}").touch()
        {work}
        return Entry({{"rows": np.arange(3)}})
    store = Store(folder / "store", run="r")
    store.open()
    (folder / f"ready-{{os.getpid()}}").touch()
    while len(list(folder.glob("ready-*"))) < {workers}:
        time.sleep(0.01)
    print(store.obtain("a/k", {{"a": "f"}}, compute).arrays["rows"].tolist(), store.problems)
"""


def command(code, *arguments):
    return [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]


def python(code, *arguments):
    result = subprocess.run(command(code, *arguments), capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_who_does_not_wait_is_told_that_another_is_at_work(store, obtain):
    other = Store(store.folder)

    def compute():
        with pytest.raises(BusyError):
            other.obtain("maps/a", KEY, lambda: pytest.fail("computed twice"), wait=False)
        return other.obtain("maps/b", KEY, lambda: Entry({}, {"of": "b"}), wait=False)

    assert store.obtain("maps/a", KEY, compute).info == {"of": "b"}
    assert other.obtain("maps/a", KEY, lambda: pytest.fail("not found")).info == {"of": "b"}


def test_an_entry_says_where_it_comes_from(store):
    computed, stored = (store.obtain(NAME, KEY, lambda: ENTRY).origin for _ in range(2))
    assert (computed.stored, stored.stored) == (False, True)
    assert computed.fingerprint == stored.fingerprint == fingerprint(KEY)
    assert computed.created == stored.created
    assert stored.versions["torch"] == computed.versions["torch"]


def verifying(store, share, run="r"):
    return Store(store.folder, run=run, verify=share)


def test_verifying_computes_a_share_of_what_is_found_again(store):
    names = [f"maps/a/{number}" for number in range(200)]
    for name in names:
        store.obtain(name, KEY, lambda: ENTRY)
    drawn = {}
    for run in ("one", "two"):
        again = verifying(store, 0.3, run)
        calls = []
        for name in names:
            again.obtain(name, KEY, lambda name=name, calls=calls: calls.append(name) or ENTRY)
        assert again.verified == len(calls)
        assert 30 <= len(calls) <= 90
        drawn[run] = calls
    assert drawn["one"] != drawn["two"]


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"correct": ~ENTRY.arrays["correct"]}, "12 of 12 values of correct differ"),
        ({"logit": ENTRY.arrays["logit"] + 1e-3}, "3000 of 3000 values of logit differ"),
        ({"logit": ENTRY.arrays["logit"][:2]}, r"logit is float64\[3000\], not float64\[2\]"),
        ({"more": np.zeros(1)}, "it has"),
    ],
)
def test_a_difference_that_no_key_covers_is_named(store, path, arrays, words):
    other = Entry({**ENTRY.arrays, **arrays}, ENTRY.info)
    with pytest.raises(VerificationError, match=words) as caught:
        verifying(store, 1.0).obtain(NAME, KEY, lambda: other)
    assert str(path) in str(caught.value)
    assert "depends" in str(caught.value)


@pytest.mark.parametrize("info", [{"passed": False}, {"figures": {"a": [1.0, 2.1]}}, {"more": 1}])
def test_a_verdict_that_differs_is_named(store, info):
    verdict = {"passed": True, "figures": {"a": [1.0, 2.0]}, "reason": "words", "seconds": 1.0}
    store.obtain("checks/a/b", KEY, lambda: Entry({}, verdict))
    same = Entry({}, {**verdict, "reason": "others", "seconds": 2.0})
    verifying(store, 1.0).obtain("checks/a/b", KEY, lambda: same)
    with pytest.raises(VerificationError, match=next(iter(info))):
        verifying(store, 1.0).obtain("checks/a/b", KEY, lambda: Entry({}, {**verdict, **info}))


def test_rounding_and_the_time_that_it_took_are_no_difference(store, path):
    arrays = {**ENTRY.arrays, "logit": ENTRY.arrays["logit"] * (1 + 1e-7)}
    other = Entry(arrays, {"seconds": 99.0, "constant": 2})
    entry = verifying(store, 1.0).obtain(NAME, KEY, lambda: other)
    assert entry.info == ENTRY.info


def test_no_lock_is_left_behind(store, obtain):
    obtain()
    with pytest.raises(ValueError, match="no"):
        store.obtain("maps/a", KEY, lambda: int("no"))
    assert list((store.folder / "locks").iterdir()) == []


def test_two_processes_compute_an_entry_once(tmp_path):
    code = WORKER.format(work="time.sleep(0.3)", workers=2)
    workers = [
        subprocess.Popen(command(code, tmp_path), stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    answers = [worker.communicate(timeout=60)[0].strip() for worker in workers]
    assert answers == ["[0, 1, 2] []"] * 2
    assert len(list(tmp_path.glob("computed-*"))) == 1


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_holder_of_a_lock_blocks_nobody(tmp_path):
    code = WORKER.format(work="time.sleep(60)", workers=1)
    holder = subprocess.Popen(command(code, tmp_path), stdout=subprocess.PIPE)
    try:
        while not list(tmp_path.glob("computed-*")):
            assert holder.poll() is None
            time.sleep(0.02)
    finally:
        os.kill(holder.pid, signal.SIGKILL)
        holder.communicate()
    started = time.monotonic()
    store = Store(tmp_path / "store")
    entry = store.obtain("a/k", {"a": "f"}, lambda: ENTRY)
    assert time.monotonic() - started < 5
    assert entry.arrays is ENTRY.arrays
    assert store.path("a/k", {"a": "f"}).is_file()
