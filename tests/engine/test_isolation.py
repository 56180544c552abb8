"""Processes of their own: the same maps to the bit, nothing left behind, and when none are."""

import copy
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

import attrcheck
from attrcheck.contracts import Case, Method
from attrcheck.engine import remote
from attrcheck.engine.attribution import attribute
from attrcheck.engine.evaluation import run_case
from attrcheck.engine.lab import Lab
from attrcheck.engine.remote import IsolationWarning, start
from attrcheck.errors import AttrcheckError, MethodError
from attrcheck.isolation import zygote
from attrcheck.isolation.patches import Patches
from attrcheck.isolation.zygote import AVAILABLE
from tests.worlds import tiny_dataset, tiny_network

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="no processes of their own on this system")


def drawn(model, images, targets, seeds, dataset):
    """Uses all that a method may ask for, and the global generators too."""
    noise = [
        torch.rand(images.shape[1:], generator=torch.Generator().manual_seed(s)) for s in seeds
    ]
    offsets = torch.rand(1) + float(np.random.rand())
    return images * torch.stack(noise) + dataset.normalise(dataset.images[:1]) + offsets


@pytest.fixture
def lab(tiny):
    """A lab in which methods have processes of their own."""
    tiny.add("drawn", drawn)
    return Lab.of(tiny.settings(isolate="auto", timeout=60))


def is_running(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("name", ["drawn", "slope", "brightness"])
def test_maps_are_the_same_to_the_bit(lab, tiny, name):
    pair = lab.pair("tiny", "linear", 7)
    there = attribute(attrcheck.method.get(name), pair, seed=3)
    here = attribute(attrcheck.method.get(name), tiny.loader.pair("tiny", "linear", 7), seed=3)
    assert name in lab.loader.remote.copies
    assert there.arrays["maps"].tobytes() == here.arrays["maps"].tobytes()
    assert there.info["constant"] == here.info["constant"]


def altered_network(pair):
    network = tiny_network(pair.dataset)
    network[3].weight.data *= -3
    return {"network": network.eval(), "original": network}


ALTERED = {
    "network": altered_network,
    "labels": lambda pair: {"labels": (pair.labels + 1) % 3},
    "images": lambda pair: {"images": pair.images.flip(0)},
    "dataset": lambda pair: {"dataset": tiny_dataset(count=8), "whole": None},
}


@pytest.mark.parametrize("what", ALTERED)
def test_altered_pairs_are_sent(lab, tiny, what):
    method = attrcheck.method.get("drawn" if what == "dataset" else "slope")
    maps = []
    for pair in (lab.pair("tiny", "linear", None), tiny.pair):
        changed = pair.altered(what, **ALTERED[what](pair))
        maps.append(changed.attribute(method, slice(2, 6), seed=1))
    assert method.name in lab.loader.remote.copies
    assert maps[0].tobytes() == maps[1].tobytes()
    plain = tiny.pair.attribute(method, slice(2, 6), seed=1)
    assert what == "dataset" or (maps[0] != plain).any()


def test_other_images_are_sent(lab, tiny):
    method = attrcheck.method.get("slope")
    images = tiny.pair.images[1:4] * 2
    there = lab.pair("tiny", "linear", None).attribute(method, slice(1, 4), 0, images)
    here = tiny.pair.attribute(method, slice(1, 4), 0, images)
    assert there.tobytes() == here.tobytes()


def test_a_network_that_cannot_be_sent_is_attributed_here(lab, tiny):
    pair = lab.pair("tiny", "linear", None)
    network = tiny_network(pair.dataset).eval()
    network.register_forward_hook(lambda module, given, output: output * 2)
    changed = pair.altered("hooked", network=network)
    maps = changed.attribute(attrcheck.method.get("slope"), slice(0, 2), seed=0)
    assert np.isfinite(maps).all()
    assert "slope" not in lab.loader.remote.copies


def test_a_process_is_kept_and_the_oldest_makes_room(lab, tiny, monkeypatch):
    monkeypatch.setattr(remote, "KEPT", 2)
    pair = lab.pair("tiny", "linear", None)
    processes = {}
    for name in ("drawn", "slope", "drawn", "brightness"):
        attribute(attrcheck.method.get(name), pair, seed=0)
        processes.setdefault(name, lab.loader.remote.copies[name].process)
        assert lab.loader.remote.copies[name].process == processes[name]
    assert list(lab.loader.remote.copies) == ["drawn", "brightness"]
    assert not is_running(processes["slope"])


def test_a_process_that_dies_once_is_forgiven(tiny, tmp_path):
    def dies_once(model, images, targets):
        if not (tmp_path / "died").exists():
            (tmp_path / "died").touch()
            os._exit(1)
        return images

    tiny.add("dies", dies_once)
    lab = Lab.of(tiny.settings(isolate="auto", timeout=60))
    result = run_case(lab.evaluation(Case.of("tiny-linear-morf")), lambda text: None)
    assert result.outcomes["dies"].status == "ok"


def test_one_that_hung_is_not_waited_for_again(tiny):
    def hangs(model, images, targets):
        time.sleep(1000)

    tiny.add("hangs", hangs)
    lab = Lab.of(tiny.settings(isolate="auto", timeout=0.5))
    pair, method = lab.pair("tiny", "linear", None), attrcheck.method.get("hangs")
    for most in (10.0, 0.4):
        began = time.monotonic()
        with pytest.raises(MethodError, match=r"did not answer within 0\.5 s, twice"):
            attribute(method, pair, seed=0)
        assert time.monotonic() - began < most


def test_a_method_that_is_not_registered_runs_here(lab):
    pids = []

    def here(model, images, targets):
        pids.append(os.getpid())
        return images

    attribute(Method("slope", here), lab.pair("tiny", "linear", None), seed=0)
    assert pids == [os.getpid()]


def test_a_pair_that_is_another_one_each_time_is_attributed_here(tiny):
    @attrcheck.model("moody", datasets="tiny*")
    def moody(data):
        network = tiny_network(data)
        network[3].weight.data += os.getpid() % 1000 + 1
        return network

    lab = Lab.of(tiny.settings(isolate="auto", timeout=60))
    with pytest.warns(IsolationWarning, match="not the same when it is loaded again"):
        attribute(attrcheck.method.get("slope"), lab.pair("tiny", "moody", None), seed=0)


def test_nothing_is_started_unless_it_is_asked_for(tiny, monkeypatch):
    assert start(tiny.settings(isolate="off")) is None
    assert start(tiny.settings(isolate="auto", methods=("saliency",))) is None
    assert start(tiny.settings(isolate="auto", methods=())) is None
    monkeypatch.setattr(remote, "AVAILABLE", False)
    assert start(tiny.settings(isolate="auto")) is None
    with pytest.raises(AttrcheckError, match="--attr-isolate on"):
        start(tiny.settings(isolate="on"))


def test_on_is_for_built_in_methods_too(tiny):
    isolation = start(tiny.settings(isolate="on", methods=("saliency", "slope")))
    assert list(isolation.methods) == ["saliency", "slope"]
    isolation.zygote.close()


def test_copies_that_do_not_work_are_noticed(tiny, monkeypatch):
    monkeypatch.setattr(remote, "START", 0.2)
    monkeypatch.setattr(remote, "_serve", lambda *_: time.sleep(100))
    with pytest.warns(IsolationWarning, match="had used threads"):
        assert start(tiny.settings(isolate="auto")) is None


def test_all_processes_end_with_the_lab(lab):
    attribute(attrcheck.method.get("slope"), lab.pair("tiny", "linear", None), seed=0)
    isolation = lab.loader.remote
    processes = [isolation.zygote.process, *(copy.process for copy in isolation.copies.values())]
    assert all(map(is_running, processes))
    isolation.zygote.close()
    deadline = time.monotonic() + 5
    while any(map(is_running, processes)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(map(is_running, processes))


SERVER = """
import os, signal, subprocess, sys, time
from attrcheck.isolation.zygote import Zygote

def serve(connection):
    child = subprocess.Popen(["sleep", "1000"])
    connection.send_bytes(b"%d %d" % (os.getpid(), child.pid))
    while True:
        time.sleep(1)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
zygote = Zygote(serve)
copy = zygote.spawn()
print(zygote.process, copy.connection.recv_bytes().decode(), flush=True)
while True:
    time.sleep(0.1)  # a signal just before a long sleep would be heeded after it
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_is_left_whatever_ends_the_first(tmp_path, number):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SERVER)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**environment, "TMPDIR": str(tmp_path)},
    ) as first:
        processes = [int(word) for word in first.stdout.readline().split()]
        assert len(processes) == 3
        assert all(map(is_running, processes))
        first.send_signal(number)
        first.wait()
        deadline = time.monotonic() + 5
        while any(map(is_running, processes)) and time.monotonic() < deadline:
            time.sleep(0.01)
    assert not any(map(is_running, processes))
    assert not list(tmp_path.iterdir())


def test_a_lost_zygote_is_said():
    made = zygote.Zygote(lambda connection: time.sleep(100))
    os.kill(made.process, signal.SIGKILL)
    with pytest.raises(zygote.ZygoteLostError):
        made.spawn()


def test_long_names_have_files_of_their_own(tiny):
    store = Lab.of(tiny.settings()).store
    names = [f"maps/tiny-linear/{'m' * 240}{end}" for end in "ab"]
    paths = {store.path(name, {}) for name in names}
    assert len(paths) == 2
    assert all(len(path.name) < 255 for path in paths)


def test_the_end_that_serves_answers_and_leaves_when_nobody_asks(tiny, monkeypatch):
    """In a thread of this process, where it can be watched."""
    monkeypatch.setattr(remote, "limit_memory", lambda more: None)
    methods = {"slope": attrcheck.method.get("slope"), "bad": Method("bad", lambda *_: 1 / 0)}
    ours, theirs = multiprocessing.Pipe()
    arguments = (theirs, tiny.settings(isolate="auto"), methods)
    thread = threading.Thread(target=remote._serve, args=arguments, daemon=True)
    thread.start()
    pair = tiny.pair
    plain = remote.Request("attribute", "slope", pair.source, pair.key, b"")
    requests = {
        "done": plain,
        "error": replace(plain, method="bad"),
        "unknown": replace(plain, key={"images": "others"}),
    }
    copy = zygote.Copy(0, ours)
    assert remote._received(copy, 60)[0]["kind"] == "working"
    for kind, request in requests.items():
        ours.send_bytes(pickle.dumps(request))
        while (answer := remote._received(copy, 60))[0]["kind"] == "working":
            pass
        assert answer[0]["kind"] == kind
        assert bool(answer[1]) == (kind == "done")
    ours.close()
    thread.join(10)
    assert not thread.is_alive()


def test_what_python_notes_in_a_class_when_it_is_copied_is_no_patch():
    class Base:
        def run(self):
            return 1

    class Odd(Base):
        pass

    copy.deepcopy(Base())
    before = Patches([(Odd, dict(vars(Odd)))], [])
    copy.deepcopy(Odd())
    assert "__slotnames__" in vars(Odd)
    assert before.undo() == []
    Odd.run = lambda self: 2
    [words] = before.undo()
    assert words.endswith("Odd.run")
    assert Odd().run() == 1
