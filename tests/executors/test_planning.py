"""What the store lacks of a run, as tasks."""

import attrcheck
from attrcheck.contracts import Case
from attrcheck.engine.evaluation import run_case
from attrcheck.engine.lab import Lab
from attrcheck.executors.planning import plan
from tests.engine.test_tuned import build, dataset
from tests.executors.distributed import cases


def told(tasks):
    return [(task.method, task.shard, [case.protocol for case in task.cases]) for task in tasks]


def test_an_empty_store_lacks_every_shard_and_what_is_shared_comes_a_shard_ahead(tiny):
    tasks = list(plan(Lab.of(tiny.settings()), cases("morf", "lerf", "insertion")))
    first, later = ["morf", "lerf", "insertion"], ["morf", "lerf"]  # which takes fewer images
    assert told(tasks) == [
        *(("", 0, first), ("", 1, later)),
        *(("brightness", 0, first), ("slope", 0, first)),
        ("", 2, later),
        *(("brightness", 1, later), ("slope", 1, later)),
        *(("brightness", 2, later), ("slope", 2, later)),
    ]
    shared = {task.shard: task for task in tasks if not task.method}
    assert all(task.after is shared[task.shard] for task in tasks if task.method)
    # The report shows maps of the first shard; no others travel.
    assert [task.method for task in tasks if task.maps] == ["brightness", "slope"]
    assert {task.shard for task in tasks if task.maps} == {0}


def test_no_maps_travel_where_none_are_kept(tiny):
    tasks = plan(Lab.of(tiny.settings(keep_maps=0)), cases("morf"))
    assert not any(task.maps for task in tasks)


def test_what_is_there_is_not_planned_and_what_is_shared_is_given(tiny):
    morf, lerf = cases("morf", "lerf")
    lab = Lab.of(tiny.settings())
    run_case(lab.evaluation(morf), lambda text: None)
    [record] = lab.store.folder.glob("records/*/slope@1-*")
    record.unlink()
    [task] = plan(lab, [morf])
    assert told([task]) == [("slope", 1, ["morf"])]
    assert task.after is None
    shard = lab.evaluation(morf).shards[1]
    assert task.given == tuple(lab.store.path(*entry) for entry in shard.common)
    assert task.keys == ([shard.key(attrcheck.method.get("slope"))],)
    # Another protocol lacks all of its own, and has a part in what was lost.
    assert told(plan(lab, [morf, lerf])) == [
        *((method, 0, ["lerf"]) for method in ("brightness", "slope")),
        ("brightness", 1, ["lerf"]),
        ("slope", 1, ["morf", "lerf"]),
        *((method, 2, ["lerf"]) for method in ("brightness", "slope")),
    ]


def test_a_fresh_run_plans_what_is_there_too(tiny):
    [case] = cases("morf")
    run_case(Lab.of(tiny.settings()).evaluation(case), lambda text: None)
    assert not list(plan(Lab.of(tiny.settings()), [case]))
    assert len(list(plan(Lab.of(tiny.settings(fresh=True, run="new")), [case]))) == 9


def test_what_cannot_be_tried_is_left_to_the_item(tiny):
    def broken(model):
        raise ValueError("not today")

    tiny.add("nowhere", lambda model, images, targets: images, not_applicable=lambda model: "no")
    tiny.add("broken", lambda model, images, targets: images, not_applicable=broken)
    attrcheck.dataset("ruined")(lambda: 1 / 0)
    wanted = [Case("ruined", "linear", "morf"), *cases("morf")]
    tasks = list(plan(Lab.of(tiny.settings(methods=(*tiny.methods, "unknown"))), wanted))
    assert {task.method for task in tasks} == {"", "brightness", "slope"}
    assert {task.pair for task in tasks} == {"many-linear"}


def test_cases_of_a_fine_tuned_model_have_tasks_of_their_own_and_are_given_its_weights(tiny):
    attrcheck.dataset("noise", offers=("training",))(dataset)
    attrcheck.model("mine", datasets="noise")(build)
    lab = Lab.of(tiny.settings())
    wanted = [Case("noise", "mine", protocol) for protocol in ("sds", "idsds", "sds_2")]
    tasks = list(plan(lab, wanted))
    assert told(tasks) == [
        *((method, 0, ["sds", "sds_2"]) for method in ("", "brightness", "slope")),
        *((method, 0, ["idsds"]) for method in ("", "brightness", "slope")),
    ]
    weights = tuple(lab.store.folder.glob("tuned/noise-mine/*.safetensors"))
    assert len(weights) == 1
    assert [task.given for task in tasks] == [()] * 3 + [weights] * 3
