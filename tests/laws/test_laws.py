"""Every law catches its culprit, lets a decent protocol pass, and holds for built-in ones."""

import subprocess
import sys
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
import torch

from attrcheck.contracts import Protocol, Reduction, Shared
from attrcheck.laws.protocols import laws_of
from attrcheck.protocols import protocol as protocols
from attrcheck.registry import RegistryError
from attrcheck.testing import check_protocol, parametrize_with_laws

VARIANTS = ["morf:uniform", "lerf:blur", "morf:channel_mean", "lerf:constant"]
ASKED = [name for name in protocols if not protocols.get(name).default]
"""Those that do not run unasked: `suites/test_laws.py` tries the others in every run."""


def quick(name):
    """A registered protocol, in the fewer steps of the default profile."""
    spec = protocols.get(name)
    return replace(spec, build=partial(spec.make, "default"))


@parametrize_with_laws(*map(quick, (*ASKED, *VARIANTS)), examples=5)
def test_built_in_protocols_obey_the_law(protocol_law):
    protocol_law()


@dataclass(frozen=True)
class Nothing(Shared):
    """One number per image."""

    key = "nothing"

    def observe(self, model, batch):
        return {"zero": np.zeros(len(batch.images))}


@dataclass(frozen=True)
class Decent(Protocol):
    """The share of positive attribution inside the mask."""

    higher_is_better = True
    bounds = (0.0, 1.0)

    @property
    def shared(self):
        return Nothing()

    def observe(self, model, batch, maps, shared):
        positive = maps.double().clamp(min=0)
        inside = (positive * batch.masks).sum((1, 2))
        return {"share": (inside / positive.sum((1, 2))).numpy(), **shared}

    def reduce(self, rows):
        scores = rows["share"]
        known = scores[np.isfinite(scores)]
        score = float(known.mean()) if len(known) else np.nan
        return Reduction(score, None, scores, len(scores) - len(known))


@parametrize_with_laws(Decent())
def test_a_decent_protocol_passes(protocol_law):
    protocol_law()


class Loose(Decent):
    """Its settings are not fields."""

    __dataclass_params__ = None


@dataclass(frozen=True)
class Address(Decent):
    tool: object = object()


class Averaged(Decent):
    def observe(self, model, batch, maps, shared):
        return {"share": super().observe(model, batch, maps, shared)["share"][:1]}


class Lost(Decent):
    @property
    def shared(self):
        class One(Nothing):
            def observe(self, model, batch):
                return {"zero": np.zeros(7)}

        return One()

    def observe(self, model, batch, maps, shared):
        return super().observe(model, batch, maps, {})


class Centred(Decent):
    def observe(self, model, batch, maps, shared):
        return super().observe(model, batch, maps - maps.mean(0), shared)


class Noisy(Decent):
    def observe(self, model, batch, maps, shared):
        return super().observe(model, batch, maps + torch.rand(maps.shape), shared)


class Clipping(Decent):
    def observe(self, model, batch, maps, shared):
        return super().observe(model, batch, maps.clamp_(min=0), shared)


class Trainer(Decent):
    def observe(self, model, batch, maps, shared):
        model.train()
        return super().observe(model, batch, maps, shared)


class Spender(Decent):
    def observe(self, model, batch, maps, shared):
        shared["zero"] += 1
        return super().observe(model, batch, maps, shared)


class Undecided(Decent):
    higher_is_better = "yes"


class Percent(Decent):
    def reduce(self, rows):
        return super().reduce({**rows, "share": 100 * rows["share"]})


class Other(Decent):
    def reduce(self, rows):
        return replace(super().reduce(rows), score=0.123)


class Silent(Decent):
    def reduce(self, rows):
        return replace(super().reduce(rows), undefined=0)


class Single(Decent):
    def reduce(self, rows):
        reduced = super().reduce(rows)
        return replace(reduced, score=np.float32(reduced.score))


class Crooked(Decent):
    def reduce(self, rows):
        return replace(super().reduce(rows), curve=([0.0, 1.0], [0.5]))


class Hasty(Decent):
    """Resamples without looking how often an image was drawn."""

    def reduce(self, rows):
        return replace(super().reduce(rows), per_image=None)

    def resample(self, rows, counts):
        return np.full(len(counts), self.reduce(rows).score)


@dataclass(frozen=True)
class Partial(Decent):
    scale: float = 1.0

    def settle(self, competitors):
        return replace(self, scale=competitors[0]["share"].mean()) if competitors else self

    def reduce(self, rows):
        reduced = super().reduce(rows)
        return Reduction(reduced.score * min(1, self.scale), undefined=reduced.undefined)


class Upside(Decent):
    higher_is_better = False


class Claims(Decent):
    sees = "order"


@pytest.mark.parametrize(
    ("culprit", "law", "says"),
    [
        (Loose, "settings_are_its_name", "Loose must be a frozen dataclass"),
        (Address, "settings_are_its_name", "address"),
        (Averaged, "rows_are_those_of_the_images", "'share' of 2 images has shape .1."),
        (Lost, "rows_are_those_of_the_images", "shared row 'zero' has shape"),
        (Centred, "rows_depend_on_no_other_image", "'share' is not the same in another batch"),
        (Noisy, "observing_again_gives_the_same_rows", "'share' is not the same the second time"),
        (Clipping, "observing_changes_nothing", "changed the maps"),
        (Trainer, "observing_changes_nothing", "changed the mode of the model"),
        (Spender, "observing_changes_nothing", "'shared zero' is not the same after observe"),
        (Undecided, "the_score_is_as_declared", "higher_is_better must be True or False"),
        (Percent, "the_score_is_as_declared", "is not in .0.0, 1.0."),
        (Other, "the_score_is_as_declared", "the score 0.123"),
        (Silent, "the_score_is_as_declared", "images have no score, undefined says 0"),
        (Single, "the_score_is_as_declared", "the score is a float32"),
        (Crooked, "the_score_is_as_declared", "2 places and 1 values"),
        (Hasty, "resampling_is_repeating_images", "rows repeated"),
        (Partial, "settling_is_fair", "depends on the order of the competitors"),
        (Upside, "the_truth_scores_no_worse_than_its_opposite", "the truth scores"),
        (Claims, "only_the_order_of_a_map_counts", "'share' is not the same after a transform"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_each_law_catches_its_culprit(culprit, law, says):
    with pytest.raises(AssertionError, match=says):
        check_protocol(culprit(), law, examples=200)


def test_only_order_based_protocols_are_held_to_it():
    names = [[law.__name__ for law in laws_of(protocol)] for protocol in (Decent(), Claims())]
    assert set(names[1]) - set(names[0]) == {"law_only_the_order_of_a_map_counts"}
    assert all(name.startswith("law_") for name in names[1])


def test_a_failure_shows_the_scene():
    with pytest.raises(AssertionError) as caught:
        check_protocol(Upside(), "the_truth*")
    assert "counterexample: Scene(seed=0, count=1" in str(caught.value)


def test_a_glob_that_matches_no_law_is_an_error():
    with pytest.raises(RegistryError, match="'no_such' selects no law of Decent: settings_are"):
        check_protocol(Decent(), "no_such")


def test_the_plugin_does_not_import_hypothesis():
    code = "import sys, attrcheck, attrcheck.plugin; sys.exit('hypothesis' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
