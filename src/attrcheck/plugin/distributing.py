"""`--attr-executor ray`: items wait for tasks that a cluster computes. Imported only when asked."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from attrcheck.contracts import Case
from attrcheck.engine.results import Outcome
from attrcheck.errors import AttrcheckError
from attrcheck.executors.cluster import Cluster, Share
from attrcheck.executors.planning import plan
from attrcheck.executors.pool import Pool
from attrcheck.plugin import options, scaling
from attrcheck.plugin.collecting import parameters_of
from attrcheck.plugin.elsewhere import Project
from attrcheck.plugin.items import LAB, lab_of, worker_of
from attrcheck.report.text import for_terminal

POOL = pytest.StashKey[Pool]()
AT_ONCE = 2
"""Tasks in flight for each that has room: the next one is there when one is done."""


def start(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    """Submit what the store lacks of the cases of these items; a usage error if nobody can do it.

    The lab of this process comes first: its copies for methods have to be made before Ray has
    threads here.
    """
    wanted = [parameter for item in items for parameter in parameters_of(item)]
    cases = [parameter for parameter in wanted if isinstance(parameter, Case)]
    share, worker = Share(*scaling.ray_share(config)), worker_of(config)
    threads = options.number(config, "threads", 1) or max(1, int(share.cpus))
    try:
        lab = lab_of(config, worker)
        project = Project.of(config, worker.run, threads)
        cluster = Cluster(options.value(config, "ray_address"), share, project.load)
    except AttrcheckError as error:
        raise pytest.UsageError(for_terminal(f"--attr-executor ray: {error}")) from error
    most = options.number(config, "ray_tasks", 1) or AT_ONCE * cluster.slots
    pool = config.stash[POOL] = Pool(cluster, lab.store, most)
    lab.store.open()
    count = pool.add(plan(lab, cases))
    room = f"{cluster.nodes} nodes with room for {cluster.slots}"
    worker.note("ray", f"Ray: {count} tasks, on {room}, {most} in flight")

    def wait(case: Case) -> Mapping[str, Outcome]:
        ended = pool.wait(case, lab.loader.progress)
        for text in pool.warnings(case):
            warnings.warn(text, stacklevel=4)
        return ended

    config.stash[LAB] = replace(lab, elsewhere=wait)


def end(config: pytest.Config) -> None:
    """Let the cluster rest."""
    if POOL in config.stash:
        config.stash[POOL].close()
        del config.stash[POOL]
