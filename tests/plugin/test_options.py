from pathlib import Path
from types import SimpleNamespace

import pytest

from attrcheck.engine.results import CaseResult, Outcome
from attrcheck.engine.settings import PROFILES, cores
from attrcheck.plugin import items, options, scaling, selection


class Config:
    """Just as much of pytest.Config as options need."""

    rootpath = Path("/project")
    invocation_params = SimpleNamespace(dir=Path("/elsewhere"))

    def __init__(self, given=None, ini=None):
        self.given = given or {}
        self.ini = ini or {}

    def getoption(self, name, default=None):
        return self.given.get(name, default)

    def getini(self, name):
        defaults = {option.ini: option.default for option in options.OPTIONS}
        return self.ini.get(name, defaults[name])


def test_the_command_line_goes_before_the_ini_file():
    assert options.value(Config(), "profile") == "default"
    assert options.value(Config(ini={"attr_profile": "full"}), "profile") == "full"
    both = Config({"attr_profile": "smoke"}, {"attr_profile": "full"})
    assert options.value(both, "profile") == "smoke"


def test_zero_and_nothing_on_the_command_line_count_as_given():
    config = Config({"attr_seed": 0, "attr_methods": ""}, {"attr_seed": 3, "attr_methods": "x"})
    assert options.value(config, "seed") == 0
    assert options.value(config, "methods") == ""


def test_folders_are_relative_to_where_they_were_said():
    assert options.folder(Config(), "store") == Path("/project/.attrcheck")
    assert options.folder(Config(ini={"attr_store": "s"}), "store") == Path("/project/s")
    assert options.folder(Config({"attr_store": "s"}), "store") == Path("/elsewhere/s")
    assert options.folder(Config({"attr_store": "/s"}), "store") == Path("/s")


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_is_a_number_of_images_that_can_be_overridden(profile):
    assert options.images(Config({"attr_profile": profile})) == PROFILES[profile]
    assert options.images(Config({"attr_profile": profile, "attr_images": 5})) == 5


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"attr_profile": "huge"}, "--attr-profile takes smoke, default, full, not huge"),
        ({"attr_weights": "none"}, "--attr-weights takes equal, pair, family, not none"),
        ({"attr_images": 0}, "--attr-images must be at least 1, not 0"),
        ({"attr_seed": -1}, "--attr-seed must be at least 0, not -1"),
        ({"attr_threads": 0}, "--attr-threads must be at least 1, not 0"),
        ({"attr_gate": ["nonsense"]}, "gate 'nonsense'"),
    ],
)
def test_a_bad_option_is_a_usage_error_that_names_it(given, words):
    with pytest.raises(pytest.UsageError, match=words):
        options.check_all(Config(given))


def test_a_name_on_the_command_line_that_nothing_has_is_a_usage_error():
    with pytest.raises(pytest.UsageError, match=r"--attr-methods: .*did you mean saliency"):
        selection.check_names(Config({"attr_methods": "salency"}))


def test_names_in_the_ini_file_wait_for_the_conftest_that_registers_them():
    options.check_all(Config(ini={"attr_methods": "not_yet_known"}))
    selection.check_names(Config(ini={"attr_methods": "not_yet_known"}))


def test_broken_promises_and_failed_writes_make_an_item_fail():
    outcomes = {
        "good": Outcome("ok", score=1.0),
        "away": Outcome("not_applicable", "no attention"),
        "none": Outcome("undefined", "no score"),
        "bad": Outcome("error", "method 'bad' raised"),
    }
    result = CaseResult("a-b-c", True, 1, 1.0, outcomes, problems=["disk full"])
    assert items.broken(result) == ["a-b-c: method 'bad' raised", "disk full"]


def test_there_is_at_least_one_core():
    assert cores() >= 1


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (None, None),
        ("100", 100),
        ("2GB", 2**31),
        ("512 MB", 2**29),
        ("1.5g", 3 * 2**29),
        ("1KiB", 1024),
    ],
)
def test_a_memory_budget_is_a_size(text, size):
    assert scaling.memory(Config({"attr_memory": text})) == size


@pytest.mark.parametrize("text", ["lots", "-1", "2 GB free", "GB"])
def test_what_is_not_a_size_is_refused(text):
    with pytest.raises(pytest.UsageError, match=f"not {text}"):
        scaling.memory(Config({"attr_memory": text}))


def test_every_kind_that_an_option_selects_has_a_registry():
    assert tuple(selection.KINDS) == options.SELECTIONS


def test_costly_methods_wait_to_be_asked_for():
    unasked = selection.methods(Config())
    everything = selection.methods(Config({"attr_profile": "full"}))
    assert {"saliency", "integrated_gradients", "random"} <= set(unasked) < set(everything)
    assert "rise" not in unasked
    assert selection.methods(Config({"attr_methods": "rise"})) == ["rise"]
    assert everything == sorted(everything)
    assert len(everything) >= 40
