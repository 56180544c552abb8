"""What is asked of Ray, with a pretended one in its place: resources, retries, losses."""

import importlib
import signal
import sys
from functools import partial
from types import ModuleType, SimpleNamespace

import pytest

from attrcheck.contracts import Case
from attrcheck.executors.computing import Answer
from attrcheck.executors.planning import Task
from attrcheck.executors.pool import LostError

TASK = Task((Case("tiny", "linear", "morf"),), 0, "slope", ([{}],))


class CrashError(Exception):
    """Of a worker that died."""


class Ray(ModuleType):
    """As much of Ray as is used: tasks are run when their answers are asked for.

    machines: what each node has that is alive. asked: the options of tasks.
    """

    def __init__(self, *machines):
        super().__init__("ray")
        self.machines, self.asked, self.calls = list(machines), {}, []
        self.exceptions = ModuleType("ray.exceptions")
        self.exceptions.WorkerCrashedError = self.exceptions.OutOfMemoryError = CrashError
        self.is_initialized = lambda: False
        self.put = lambda value: SimpleNamespace(value=lambda: value)
        self.get = lambda handle: handle.value()
        self.cancel = partial(self._call, "cancel")
        self.shutdown = partial(self._call, "shutdown")

    def _call(self, name, *arguments):
        self.calls.append((name, *arguments))

    def init(self, **settings):
        self.calls.append(("init", settings["address"]))
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def nodes(self):
        return [{"Alive": True, "Resources": dict(machine)} for machine in self.machines]

    def remote(self, **options):
        self.asked = options

        def wrap(function):
            def submit(*arguments):
                given = [getattr(one, "value", lambda one=one: one)() for one in arguments]
                return SimpleNamespace(value=lambda: function(*given))

            return SimpleNamespace(remote=submit)

        return wrap

    def wait(self, handles, num_returns=1, timeout=0):
        return handles[:num_returns], handles[num_returns:]


@pytest.fixture
def connect(monkeypatch):
    """Connect to a cluster of these machines; the module that does so, the cluster, and Ray."""

    def connect(*machines, cpus=1.0, gpus=0.0, address="", load=None):
        ray = Ray(*machines)
        monkeypatch.setitem(sys.modules, "ray", ray)
        monkeypatch.setitem(sys.modules, "ray.exceptions", ray.exceptions)
        monkeypatch.delitem(sys.modules, "attrcheck.executors.cluster", raising=False)
        module = importlib.import_module("attrcheck.executors.cluster")
        return module, module.Cluster(address, module.Share(cpus, gpus), load), ray

    yield connect
    sys.modules.pop("attrcheck.executors.cluster", None)


def test_a_task_is_tried_again_if_its_worker_dies_and_not_if_it_fails(connect):
    before = signal.getsignal(signal.SIGTERM)
    _, cluster, ray = connect({"CPU": 4.0}, {"CPU": 3.0}, cpus=2.0)
    assert (cluster.nodes, cluster.slots) == (2, 3)
    assert (ray.asked["max_retries"], ray.asked["retry_exceptions"]) == (3, False)
    assert (ray.asked["num_cpus"], ray.asked["num_gpus"]) == (2.0, 0.0)
    assert signal.getsignal(signal.SIGTERM) is before  # else a run would end without a report


@pytest.mark.parametrize(
    ("gpus", "machines", "calls"),
    [(0.0, 8.0, 0), (1.0, 1.0, 0), (0.5, 1.0, 0), (1.0, 2.0, 1), (0.5, 4.0, 1)],
)
def test_a_process_is_kept_unless_it_may_be_given_another_gpu(connect, gpus, machines, calls):
    _, _, ray = connect({"CPU": 4.0, "GPU": machines}, gpus=gpus)
    assert ray.asked["max_calls"] == calls


def test_resources_count_node_by_node(connect):
    with pytest.raises(Exception, match="no node has 1 CPUs and 2 GPUs, as a task needs; there"):
        connect({"CPU": 4.0, "GPU": 1.0}, {"CPU": 4.0, "GPU": 1.0}, gpus=2.0)
    assert sys.modules["ray"].calls[-1] == ("shutdown",)


def test_nobody_at_an_address_is_told_at_once(connect):
    with pytest.raises(Exception, match=r"there is no Ray cluster at 127\.0\.0\.1:1 "):
        connect({"CPU": 1.0}, address="127.0.0.1:1")
    assert not sys.modules["ray"].calls


def test_a_worker_that_cannot_load_the_project_says_why(connect):
    def load():
        raise ValueError("no such project")

    _, cluster, _ = connect({"CPU": 1.0}, load=load)
    [handle] = cluster.done([cluster.submit(TASK, None)], 1)
    [why] = cluster.answer(handle).failed.values()
    assert why.endswith("ValueError: no such project")


def test_a_worker_that_dies_is_a_loss_and_what_is_left_is_cancelled(connect):
    def dies():
        raise CrashError("The worker died unexpectedly.\nSee its log.")

    _, cluster, ray = connect({"CPU": 1.0})
    dead = SimpleNamespace(value=dies)
    with pytest.raises(LostError, match=r"^its Ray worker died 4 times: The worker died unexpec"):
        cluster.answer(dead)
    cluster.close([dead])
    assert ray.calls[-2:] == [("cancel", dead), ("shutdown",)]


def test_a_cluster_without_nodes_is_noticed(connect, monkeypatch):
    module, cluster, ray = connect({"CPU": 1.0})
    monkeypatch.setattr(ray, "wait", lambda handles, timeout: ([], handles))
    assert cluster.done(["a"], 0) == []
    monkeypatch.setattr(module, "ALONE", -1.0)
    assert cluster.done(["a"], 0) == []
    ray.machines.clear()
    with pytest.raises(module.ClusterError, match="has lost every node with 1 CPUs"):
        cluster.done(["a"], 0)


def test_files_are_sent_once_for_the_tasks_of_a_shard(connect, tmp_path, monkeypatch):
    module, cluster, _ = connect({"CPU": 1.0})
    seen = []

    def compute(task, lab, given):
        seen.append((task.given, given))
        return Answer()

    monkeypatch.setattr(module, "compute", compute)
    monkeypatch.setattr(module, "_LABS", ["a lab"])
    (tmp_path / "entry").write_bytes(b"rows")
    task = Task(TASK.cases, 0, "slope", TASK.keys, given=(tmp_path / "entry",))
    first = cluster.submit(task, None)
    (tmp_path / "entry").unlink()
    second = cluster.submit(task, first)
    cluster.answer(first), cluster.answer(second)
    assert [one[0] for one in seen] == [(), (), ()]
    assert seen[0][1] == (Answer((b"rows",)),)
    assert seen[-1][1] == (Answer((b"rows",)), Answer())
