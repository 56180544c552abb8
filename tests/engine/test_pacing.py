"""What a case at work says of itself."""

from attrcheck.engine.pacing import Steps


def test_it_tells_method_shard_pace_and_time_left():
    now, told = [0.0], []
    steps = Steps("a-x-morf", methods=2, shards=2, tell=told.append, clock=lambda: now[0])
    steps.skip(0, 2)
    steps.begin("one", 0)
    assert told.pop() == "a-x-morf one, method 1 of 2, shard 1 of 2"
    now[0] = 10.0
    steps.end(256)
    steps.begin("two", 0)
    assert told.pop() == "a-x-morf two, method 2 of 2, shard 1 of 2, 25.6 images/s, 0:30 left"
    now[0] = 20.0
    steps.end(256)
    steps.skip(1, 1)  # the first method failed
    steps.begin("two", 1)
    assert told.pop() == "a-x-morf two, method 2 of 2, shard 2 of 2, 25.6 images/s, 0:06 left"


def test_a_case_of_one_shard_does_not_speak_of_it():
    told = []
    Steps("a-x-morf", methods=29, shards=1, tell=told.append).begin("lrp", 0)
    assert told == ["a-x-morf lrp, method 1 of 29"]
