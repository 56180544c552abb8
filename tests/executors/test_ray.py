"""`--attr-executor ray` on a cluster of two nodes, all on this machine."""

import signal
import subprocess
import sys
import time

import pytest

from attrcheck.store.encoding import read_entry
from attrcheck.store.inventory import files
from tests.plugin.test_plugin import PLAIN, run
from tests.plugin.test_tasks import report
from tests.worlds import ITEMS, TINY, method

pytest.importorskip("ray", reason="Ray is not installed: pip install 'attrcheck[ray]'")
from ray.cluster_utils import Cluster

import attrcheck.plugin.distributing  # noqa: F401 - stays, or pytester forgets what Ray pickles

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow

IMAGES = 600
"""Three shards, the last one smaller."""
NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
QUICK = {"health_check_period_ms": 1000, "health_check_failure_threshold": 4}
"""So that the loss of a node is noticed soon."""
PATIENCE = 180
"""Seconds that a run may take, on a machine that has other things to do."""
LOGGED = 'open("log", "a").write(f"{len(images)}\\n")\n    return images'
LATE = """
    if len(images) + images.shape[0] % 256 == 176:
        raise ValueError("not these")
    return images
"""
WAITING = """
    import time
    open("begun", "a").write(f"{os.getppid()}\\n")
    while not os.path.exists("go"):
        time.sleep(0.05)
    return images
"""
FUSE = """
    if os.path.exists("fuse"):
        os.remove("fuse")
        os.kill(os.getpid(), signal.SIGKILL)
    return images
"""


@pytest.fixture(scope="module")
def cluster():
    """Two nodes with room for a task each."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("RAY_USAGE_STATS_ENABLED", "0")
        head = {**NODE, "include_dashboard": False, "_system_config": QUICK}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        cluster.add_node(**NODE)
        yield cluster
        cluster.shutdown()


@pytest.fixture
def project(pytester):
    pytester.makepyfile(test_suite=ITEMS)
    return pytester


def having(project, **bodies):
    """Give the project methods with these bodies."""
    methods = (method(f"mine_{name}", body.strip()) for name, body in bodies.items())
    project.makeconftest(TINY.replace("30", str(IMAGES)) + "".join(methods))


def on(cluster, *arguments):
    return ("--attr-executor=ray", f"--attr-ray-address={cluster.address}", *arguments)


def both(project, cluster, *arguments):
    """The results of a run in one process and of one on the cluster."""
    results = []
    for name, more in {"one": (), "ray": on(cluster)}.items():
        folders = (f"--attr-store={name}-store", f"--attr-report-dir={name}")
        chosen = (f"--attr-images={IMAGES}", "--attr-report", *arguments, *folders, *more)
        results.append(run(project, *chosen))
    return results


@pytest.fixture
def start(project, cluster):
    """Start a run on the cluster in a process of its own, whose output is in a file."""
    chosen = (
        *("--attr-datasets=halves", "--attr-models=linear", "--attr-protocols=morf"),
        *("--attr-methods=exact,random,mine_waits", "--attr-threads=1", "--attr-isolate=off"),
        *(f"--attr-images={IMAGES}", "--attr-store=ray-store", *on(cluster)),
    )
    started = []

    def start():
        with (project.path / "output").open("w") as output:
            command = [sys.executable, "-m", "pytest", *PLAIN, *chosen]
            started.append(subprocess.Popen(command, cwd=project.path, stdout=output))
        return started[-1]

    yield start
    for process in started:
        process.kill()


def ended(project, process):
    """What a run has printed that ended well."""
    code, output = process.wait(PATIENCE), (project.path / "output").read_text()
    assert code == 0, output
    return output


def until(condition):
    """Wait for something to become true."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.1)


def entries(folder):
    """What a store holds, but the maps: those of most shards stay where they were made."""
    return {
        path.relative_to(folder): read_entry(path)[1]
        for path in files(folder)
        if "maps" not in path.relative_to(folder).parts
    }


def test_a_run_on_two_nodes_gives_the_report_of_one_process(project, cluster, same_arrays):
    """Also with methods that fail on the last shard only, or kill their processes."""
    having(project, logged=LOGGED, late=LATE, dies="os.kill(os.getpid(), signal.SIGKILL)")
    one, ray = both(project, cluster, "--attr-models=linear")
    assert one.ret == ray.ret == pytest.ExitCode.TESTS_FAILED
    ray.stdout.fnmatch_lines(["Ray: *2 nodes with room for 2*", "*crashed its process twice*"])
    document = report(project, "ray")
    assert document == report(project, "one")
    statuses = {name: one["status"] for name, one in document["cases"][0]["scores"].items()}
    assert statuses == {
        "exact": "ok",
        "mine_dies": "error",
        "mine_late": "error",
        "mine_logged": "ok",
        "random": "ok",
    }
    # Maps are made once for both protocols: in one process, and on the cluster.
    asked = sum(map(int, (project.path / "log").read_text().split()))
    assert asked == 2 * IMAGES
    local, sent = (entries(project.path / f"{name}-store") for name in ("one", "ray"))
    # Nothing that failed elsewhere is kept, so that nobody asks there for the code behind it.
    assert sent.keys() == {place for place in local if place.parts[0] != "checks"}
    assert all(same_arrays(sent[place].arrays, local[place].arrays) for place in sent)


def test_a_worker_that_is_killed_in_a_task_is_replaced(project, cluster):
    having(project, fuse=FUSE)
    (project.path / "fuse").touch()
    ray = run(project, f"--attr-images={IMAGES}", "--attr-isolate=off", *on(cluster))
    ray.assert_outcomes(passed=4)
    assert not (project.path / "fuse").exists()


@pytest.fixture
def node(cluster):
    """A third node, which may go."""
    node = cluster.add_node(**NODE)
    yield node
    if node in cluster.worker_nodes:
        cluster.remove_node(node, allow_graceful=False)


def test_a_node_may_go_in_the_middle(project, cluster, node, start):
    having(project, waits=WAITING)
    process = start()
    begun = project.path / "begun"
    # As many as there are nodes wait, so one of them is on the node that goes.
    until(lambda: begun.exists() and len(begun.read_text().split()) == 3)
    cluster.remove_node(node, allow_graceful=False)
    (project.path / "go").touch()
    assert "Ray: 12 tasks, on 3 nodes" in ended(project, process)
    assert len(begun.read_text().split()) == 4  # three shards, one of them twice


def test_a_driver_that_was_killed_goes_on_where_it_was(project, start):
    having(project, waits=WAITING)
    process = start()
    begun, store = project.path / "begun", project.path / "ray-store"
    until(lambda: begun.exists() and len(begun.read_text().split()) == 2)
    time.sleep(1)  # both nodes wait by now, and what was done before has arrived
    process.send_signal(signal.SIGKILL)
    process.wait()
    records = [*store.glob("records/*/*.safetensors")]
    shards = {path.name.partition("-")[0] for path in store.glob("shared/*/intact*")}
    assert len(records) >= 2
    (project.path / "go").touch()
    left = 9 - len(records) + 3 - len(shards)
    assert f"Ray: {left} tasks, on 2 nodes" in ended(project, start())


def test_what_no_node_has_is_an_error_at_once(project, cluster):
    having(project)
    result = run(project, *on(cluster, "--attr-ray-gpus=1"))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "ERROR: --attr-executor ray: no node has 1 CPUs and 1 GPUs, as a task needs; there "
            "are: 1 CPUs, 0 GPUs; 1 CPUs, 0 GPUs"
        ]
    )
    result.stdout.no_fnmatch_line("*Meta-Rank*")


def test_a_cluster_that_is_not_there_is_a_usage_error(project):
    having(project)
    result = run(project, "--attr-executor=ray", "--attr-ray-address=127.0.0.1:1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --attr-executor ray: there is no Ray cluster at 127*"])
