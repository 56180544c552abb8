import random

import numpy as np
import pytest
import torch

from attrcheck.engine.attribution import attribute, attribute_batch
from attrcheck.errors import MethodError
from attrcheck.store.seeds import derive

PAIR = "on tiny-linear"


def uneven(images):
    """Maps that are never constant."""
    return images.sum(1)


def failing(*arguments, **settings):
    """The message of the MethodError, which names the method and the pair."""
    with pytest.raises(MethodError) as caught:
        attribute(*arguments, seed=0, **settings)
    message = str(caught.value)
    assert message.startswith(f"method 'broken' {PAIR} ")
    return message


@pytest.fixture
def fails(tiny, monkeypatch):
    """Run a function as a method in batches of three; the message of its failure."""
    tiny.in_batches_of(3, monkeypatch)

    def fails(function, **settings):
        return failing(tiny.method(function, **settings), tiny.pair)

    return fails


def in_second_batch(good, bad):
    """A method that goes wrong from its second call on."""
    calls = []

    def function(model, images, targets):
        calls.append(1)
        return (good if len(calls) == 1 else bad)(images)

    return function


def test_maps_of_all_images_come_in_their_order(tiny, monkeypatch):
    tiny.in_batches_of(3, monkeypatch)
    pair = tiny.pair
    sizes = []

    def function(model, images, targets):
        sizes.append((len(images), len(targets)))
        return uneven(images)

    entry = attribute(tiny.method(function), pair, seed=0)
    assert sizes == [(3, 3), (3, 3), (2, 2)]
    assert entry.arrays["maps"].dtype == np.float32
    np.testing.assert_array_equal(entry.arrays["maps"], pair.images.sum(1).numpy())
    assert entry.info["constant"] == 0
    assert entry.info["seconds"] > 0


@pytest.mark.parametrize("prepared", [True, False, None])
def test_a_method_gets_a_network_normalised_images_and_labels(tiny, prepared):
    pair = tiny.pair

    def function(model, images, targets):
        assert model is (pair.network if prepared else pair.original)
        assert torch.equal(images, pair.images)
        assert torch.equal(targets, pair.labels)
        assert torch.is_grad_enabled()
        assert not images.is_inference()
        return uneven(images)

    attribute(tiny.method(function, prepared=prepared), pair, seed=0)


def test_channels_are_summed_with_their_sign(tiny):
    method = tiny.method(lambda model, images, targets: images)
    maps = attribute(method, tiny.pair, seed=0).arrays["maps"]
    assert maps.shape == (8, 5, 5)
    np.testing.assert_allclose(maps, tiny.pair.images.sum(1), rtol=1e-6)
    assert (maps < 0).any()


def test_one_channel_is_as_good_as_none(tiny):
    plain, single = (
        attribute(tiny.method(function), tiny.pair, seed=0).arrays["maps"]
        for function in (
            lambda model, images, targets: uneven(images),
            lambda model, images, targets: uneven(images)[:, None],
        )
    )
    assert single.shape == (8, 5, 5)
    np.testing.assert_array_equal(single, plain)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int32, torch.bfloat16])
def test_maps_of_any_dtype_become_floats(tiny, dtype):
    method = tiny.method(lambda model, images, targets: (uneven(images) * 10).to(dtype))
    assert attribute(method, tiny.pair, seed=0).arrays["maps"].dtype == np.float32


def test_maps_may_carry_a_graph(tiny):
    method = tiny.method(lambda model, images, targets: uneven(images.requires_grad_()))
    assert np.isfinite(attribute(method, tiny.pair, seed=0).arrays["maps"]).all()


def test_a_method_may_fill_the_same_tensor_again_and_again(tiny, monkeypatch):
    tiny.in_batches_of(4, monkeypatch)
    buffer = torch.empty(4, 5, 5)
    method = tiny.method(lambda model, images, targets: buffer.copy_(uneven(images)))
    maps = attribute(method, tiny.pair, seed=0).arrays["maps"]
    np.testing.assert_array_equal(maps, tiny.pair.images.sum(1).numpy())


def test_an_exception_is_told_with_its_type_text_and_batch(fails):
    def function(model, images, targets):
        raise KeyError("no such layer")

    message = fails(function)
    assert "raised KeyError" in message
    assert "no such layer" in message
    assert "'picture0'" in message


def test_an_exception_in_a_later_batch_names_its_first_image(fails):
    message = fails(in_second_batch(uneven, lambda images: 1 / 0))
    assert "raised ZeroDivisionError" in message
    assert "'picture3'" in message


def test_the_exception_is_kept_as_the_cause(tiny):
    def function(model, images, targets):
        raise KeyError("inner")

    with pytest.raises(MethodError) as caught:
        attribute(tiny.method(function), tiny.pair, seed=0)
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [(None, "NoneType"), (np.zeros((3, 5, 5)), "ndarray"), ((torch.zeros(3, 5, 5),), "tuple")],
)
def test_an_answer_that_is_no_tensor_is_refused(fails, answer, kind):
    assert f"returned {kind}, not a torch.Tensor" in fails(lambda model, images, targets: answer)


@pytest.mark.parametrize(
    "bad",
    [
        lambda images: images[:, :1, :4],
        lambda images: images.sum((1, 2)),
        lambda images: uneven(images)[:, :4],
        lambda images: uneven(images)[:-1],
        lambda images: uneven(images)[0],
        lambda images: images.sum(),
        lambda images: uneven(images)[..., None],
    ],
    ids=[
        "one channel, cut",
        "a line",
        "cut",
        "one image less",
        "one image",
        "a number",
        "more axes",
    ],
)
def test_an_answer_of_another_shape_is_refused(fails, bad):
    message = fails(in_second_batch(uneven, bad))
    assert "returned a tensor of shape" in message
    assert "wanted [3, 5, 5]" in message
    assert "[3, 2, 5, 5]" in message


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_values_that_are_not_finite_name_the_first_bad_image(fails, value):
    def spoil(images):
        maps = uneven(images)
        maps[1:, 2, 2] = value
        return maps

    message = fails(in_second_batch(uneven, spoil))
    assert "not finite" in message
    assert "'picture4'" in message


def test_values_beyond_single_precision_are_not_finite(fails):
    assert "not finite" in fails(lambda model, images, targets: uneven(images).double() * 1e60)


def flat_in_the_middle(images):
    maps = uneven(images)
    maps[1] = 3.0
    return maps


def test_a_constant_map_names_its_image(fails):
    message = fails(in_second_batch(uneven, flat_in_the_middle))
    assert "constant map" in message
    assert "'picture4'" in message


def test_a_constant_map_is_counted_where_the_method_declares_it(tiny, monkeypatch):
    tiny.in_batches_of(3, monkeypatch)
    function = in_second_batch(uneven, flat_in_the_middle)
    method = tiny.method(function, constant="a dead ReLU has no gradient")
    assert attribute(method, tiny.pair, seed=0).info["constant"] == 2


SPOILS = {
    "changed the weights of the model": lambda model: next(model.parameters()).data.add_(1),
    "left hooks on the model": lambda model: model.register_forward_hook(lambda *_: None),
    "mode of the model": lambda model: model.train(),
}


@pytest.mark.parametrize("words", SPOILS)
def test_a_method_must_leave_the_model_as_it_was(fails, words):
    def function(model, images, targets):
        SPOILS[words](model)
        return uneven(images)

    assert words in fails(function)


def test_a_model_left_in_another_precision_is_noticed(fails):
    def function(model, images, targets):
        return torch.autograd.functional.jacobian(
            lambda x: model.double()(x).sum(), images.double()
        )

    assert "changed" in fails(function)


@pytest.mark.parametrize("what", ["images", "targets"])
def test_a_method_must_not_change_its_input(fails, what):
    def function(model, images, targets):
        maps = uneven(images).clone()
        {"images": images, "targets": targets}[what].add_(1)
        return maps

    assert "changed its input; work on a copy" in fails(function)


def test_a_method_that_changes_its_input_spoils_nobody_elses(tiny):
    before = tiny.pair.images.clone()
    with pytest.raises(MethodError):
        attribute(tiny.method(lambda model, images, targets: images.add_(1)), tiny.pair, seed=0)
    assert torch.equal(tiny.pair.images, before)
    assert torch.equal(tiny.pair.dataset.images, tiny.dataset().images)


def test_gradients_left_on_weights_are_removed(tiny):
    def function(model, images, targets):
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        return uneven(images)

    attribute(tiny.method(function), tiny.pair, seed=0)
    assert all(parameter.grad is None for parameter in tiny.pair.network.parameters())


def test_seeds_are_passed_to_those_who_ask(tiny, monkeypatch):
    tiny.in_batches_of(3, monkeypatch)
    given = []

    def function(model, images, targets, seeds):
        given.extend(seeds)
        return uneven(images)

    attribute(tiny.method(function, name="seedy"), tiny.pair, seed=5)
    assert given == [derive(5, "tiny", f"picture{at}", "seedy") for at in range(8)]


DRAWS = {
    "torch": lambda: torch.rand(5, 5),
    "numpy": lambda: torch.from_numpy(np.random.rand(5, 5)),
    "random": lambda: torch.tensor([[random.random() for _ in range(5)] for _ in range(5)]),
}


@pytest.fixture(params=DRAWS)
def draw(request):
    """A draw from one of the global generators, left as they were after the test."""
    torch_state, numpy_state, state = (
        torch.get_rng_state(),
        np.random.get_state(),
        random.getstate(),
    )
    yield DRAWS[request.param]
    torch.set_rng_state(torch_state)
    np.random.set_state(numpy_state)
    random.setstate(state)


def test_global_random_numbers_are_seeded(tiny, draw):
    method = tiny.method(lambda model, images, targets: draw().expand(len(images), 5, 5))
    first = attribute(method, tiny.pair, seed=0).arrays["maps"]
    draw()
    np.testing.assert_array_equal(attribute(method, tiny.pair, seed=0).arrays["maps"], first)
    assert (attribute(method, tiny.pair, seed=1).arrays["maps"] != first).any()


@pytest.mark.parametrize("raises", [False, True])
def test_global_random_numbers_are_put_back(tiny, draw, raises):
    def function(model, images, targets):
        draw()
        assert not raises
        return uneven(images)

    before = (torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate())
    method = tiny.method(function)
    if raises:
        with pytest.raises(MethodError):
            attribute(method, tiny.pair, seed=0)
    else:
        attribute(method, tiny.pair, seed=0)
    after = (torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate())
    assert torch.equal(before[0], after[0])
    assert np.random.get_state()[1].tolist() == before[1]
    assert before[2] == after[2]


def test_gradients_are_switched_on_again_after_a_method_that_switched_them_off(tiny):
    def function(model, images, targets):
        torch.set_grad_enabled(False)
        return uneven(images)

    try:
        attribute(tiny.method(function), tiny.pair, seed=0)
        assert torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)


def test_one_batch_can_be_asked_for_alone(tiny):
    method = tiny.method(lambda model, images, targets: uneven(images))
    maps = attribute_batch(method, tiny.pair, slice(2, 5), seed=0)
    np.testing.assert_array_equal(maps, tiny.pair.images[2:5].sum(1).numpy())


def test_torchs_default_type_and_threads_are_put_back(tiny):
    def function(model, images, targets):
        torch.set_default_dtype(torch.float64)
        torch.set_num_threads(7)
        return uneven(images)

    threads = torch.get_num_threads()
    attribute(tiny.method(function), tiny.pair, 0)
    assert torch.get_default_dtype() is torch.float32
    assert torch.get_num_threads() == threads
