"""Classes of a dataset among the outputs of a model: in the right order, or an error."""

import pytest

from attrcheck.adapters.vision import timm, torchvision
from attrcheck.models import imagenet
from attrcheck.models.classes import ClassError, known_synsets, matched

SYNSETS = imagenet.synsets()
CATEGORIES = torchvision.models.ResNet18_Weights.DEFAULT.meta["categories"]
CRANES = (134, 517)
"""The bird and the machine."""


def match(data, model):
    return matched(data, model, len(data), len(model))


def test_the_synsets_are_imagenets_in_order():
    info = timm.data.ImageNetInfo("imagenet-1k")
    assert list(SYNSETS) == info.label_names()
    assert list(imagenet.english().values()) == info.label_descriptions()
    assert SYNSETS[0] == "n01440764"
    assert list(SYNSETS) == sorted(SYNSETS)


def test_equal_names_are_in_order_even_if_some_are_the_same():
    assert match(["a", "a", "b"], ["a", "a", "b"]) == (0, 1, 2)


def test_names_in_another_order():
    assert match(["bee", "ant"], ["ant", "cat", "bee"]) == (2, 0)


def test_imagenet_a_is_200_of_the_1000_synsets():
    folders = timm.data.dataset_info  # the package that has the lists
    path = f"{folders.__file__.rpartition('/')[0]}/_info"
    with open(f"{path}/imagenet_a_synsets.txt") as names:
        data = names.read().split()
    with open(f"{path}/imagenet_a_indices.txt") as indices:
        expected = tuple(map(int, indices.read().split()))
    assert len(data) == 200
    assert match(data, SYNSETS) == expected


def test_torchvisions_categories_are_known_as_the_synsets():
    assert known_synsets(CATEGORIES) == SYNSETS
    assert match(CATEGORIES, SYNSETS) == tuple(range(1000))
    assert match(SYNSETS, CATEGORIES) == tuple(range(1000))


def test_the_same_names_in_another_order_are_not_taken_for_imagenets():
    backwards = list(reversed(CATEGORIES))
    assert known_synsets(backwards) == ()
    assert match(backwards[:100], SYNSETS) == tuple(range(999, 899, -1))


@pytest.mark.parametrize(
    ("data", "model", "places"),
    [
        (["Apple_Pie", "french-fries"], ["french fries", "apple pie"], (1, 0)),
        (["tench", "fire_truck"], ["n01440764", "n03345487"], (0, 1)),
        (["n03345487"], ["tench, Tinca tinca", "fire engine, fire truck"], (1,)),
        (["great white shark"], SYNSETS, (2,)),
        (["maillot"], SYNSETS, (638,)),  # not `maillot, tank suit`
        (["bank", "Bank Holiday"], ["bank holiday", "bank"], (1, 0)),
    ],
)
def test_english_names(data, model, places):
    assert match(data, model) == places


@pytest.mark.parametrize(
    ("data", "places"), [(["0", "1", "10", "2"], (0, 1, 10, 2)), (["00007", "00999"], (7, 999))]
)
def test_folders_with_numbers_are_outputs_with_these_numbers(data, places):
    assert match(data, SYNSETS) == places


def test_names_that_are_numbers_on_both_sides_are_names():
    assert match(["10", "2"], ["1", "10", "2"]) == (1, 2)


@pytest.mark.parametrize("known", [([], ["a", "b"]), (["a", "b"], []), ([], [])])
def test_where_a_side_has_no_names_equal_counts_match_by_index(known):
    assert matched(*known, 2, 2) == (0, 1)


@pytest.mark.parametrize(
    ("data", "model", "counts", "words"),
    [
        (["a"] * 3, [], (3, 5), "has 3 classes and the model 5 outputs, and the model's class na"),
        ([], ["a"] * 5, (3, 5), "the dataset's class names are not known.*classes.txt"),
        (["a", "b"], ["c", "d"], (2, 2), "2 of .* 2 classes are not among the model's 2: 'a', 'b'"),
        (["a", "x"], ["a", "b"], (2, 2), "1 of the dataset's 2 .*: 'x'; the model has 'a', 'b'"),
        (["crane"], SYNSETS, (1, 1000), "'crane' may be any of the model's outputs 134, 517"),
        (["A", "a"], ["a", "b"], (2, 2), "'A' and 'a' are both the model's output 0"),
        (["1", "1000"], SYNSETS, (2, 1000), "numbers up to 1000.*0 to 999; are they counted from"),
        (["1", "01"], SYNSETS, (2, 1000), "'1' and '01' are both the model's output 1"),
    ],
)
def test_doubt_is_an_error(data, model, counts, words):
    with pytest.raises(ClassError, match=words):
        matched(data, model, *counts)


def test_of_many_unmatched_names_a_few_are_shown():
    with pytest.raises(ClassError, match=r"9 of .*'c0', 'c1', 'c2', 'c3', 'c4', \.\.\.;"):
        match([f"c{index}" for index in range(9)], ["a"])
