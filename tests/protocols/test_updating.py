"""Incremental deletion with updated maps: the published figures, and what goes at each step."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from attrcheck.methods import method as methods
from attrcheck.protocols.ablation import ids
from attrcheck.protocols.updating import ids_updated
from tests.worlds import batch_of, linear_model, rows_of, single_deletion_vectors

UPDATED = {
    "grad_raw": "gradient",
    "grad_abs": "saliency",
    "ixg_raw": "input_x_gradient",
    "ixg_abs": "input_x_gradient_abs",
    "ig_raw": "integrated_gradients",
    "ig_abs": "integrated_gradients_abs",
}


@pytest.mark.parametrize(("published_as", "name"), UPDATED.items())
def test_scores_of_updated_maps_are_the_published_ones(published_as, name):
    network, images, targets, maps, published = single_deletion_vectors()

    def attribute(changed):
        changed_maps = methods.get(name).attribute(network, changed, targets)
        return changed_maps.sum(1) if changed_maps.ndim == 4 else changed_maps

    protocol = ids_updated()
    batch = batch_of(images, targets, network, attribute=attribute)
    scores = protocol.reduce(rows_of(protocol, network, batch, maps[published_as])).per_image
    np.testing.assert_allclose(scores, published[f"ids_upd_asc_{published_as}"], atol=1e-6)


def test_updated_maps_by_hand():
    """Four pixels, one per step: each new map puts the heaviest of those left last."""
    weight = torch.tensor([[1.0, 2.0, 4.0, 8.0]])
    model, images = linear_model(weight), torch.ones(1, 1, 1, 4)
    asked = []

    def attribute(changed):
        asked.append(changed[0, 0, 0].tolist())
        # What is gone looks least relevant of all, and must not count again.
        return torch.where(changed[:, 0] == 0, -9.0, -weight)

    batch = batch_of(images, torch.tensor([1]), model, attribute=attribute)
    protocol = replace(ids_updated(), at=(0, 1, 2, 3), of=4, measure="logit")
    rows = rows_of(protocol, model, batch, torch.tensor([[[3.0, 1.0, 2.0, 4.0]]]))
    # The given map takes the 2, then 8 and 4 go by the new ones.
    assert rows["logit"].tolist() == [[15, 13, 5, 1]]
    assert asked == [[1, 0, 1, 1], [1, 0, 1, 0]]
    assert protocol.reduce(rows).score == (15 + 13 + 5 + 1) / 4


@pytest.mark.parametrize("most_relevant_first", [False, True])
@pytest.mark.parametrize("at", [range(9), range(2, 9, 3), range(10)])
def test_maps_that_do_not_change_give_the_rows_of_a_fixed_map(most_relevant_first, at):
    torch.manual_seed(0)
    model = linear_model(torch.randn(6, 6))
    images, maps = torch.randn(3, 1, 6, 6), torch.randint(-2, 3, (3, 6, 6)).float()
    labels = torch.tensor([0, 1, 1])
    settings = {"at": tuple(at), "of": 9, "most_relevant_first": most_relevant_first}
    updated, fixed = replace(ids_updated(), **settings), replace(ids(), **settings)
    batch = batch_of(images, labels, model, attribute=lambda changed: maps)
    one, other = (rows_of(protocol, model, batch, maps) for protocol in (updated, fixed))
    # Ties among what is left are broken alike, since the seeds are the same.
    for name in one:
        np.testing.assert_array_equal(one[name], other[name])


def test_updated_rows_are_not_mistaken_for_fixed_ones():
    steps = {"at": (0, 1), "of": 2}
    updated, fixed = replace(ids_updated(), **steps), replace(ids(), **steps)
    assert updated.observation != fixed.observation


def test_profiles_take_fewer_steps_and_images():
    assert (len(ids_updated().at), ids_updated().most_images) == (32, None)
    quick = ids_updated("default")
    assert len(quick.at) < 32
    assert quick.at[0] == 0
    assert quick.most_images is not None
    assert len(ids("default").at) == 32
