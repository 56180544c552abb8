"""A stand-in for Quantus: what its metrics look like from outside, decent ones and others."""

import random
import sys
import types
from enum import Enum

import numpy as np
import torch
from torch import nn

COUNT, CHANNELS, SIDE = 3, 3, 16


class Direction(Enum):
    HIGHER = "higher"
    LOWER = "lower"


class Fake:
    """What the metrics of Quantus look like from outside."""

    score_direction = Direction.HIGHER
    evaluation_category = types.SimpleNamespace(value="Faithfulness")

    def __init__(self, factor=1.0, disable_warnings=False, display_progressbar=False, **kwargs):
        assert not kwargs
        assert disable_warnings
        assert not display_progressbar
        self.factor = factor

    def __call__(
        self,
        model,
        x_batch,
        y_batch,
        a_batch=None,
        s_batch=None,
        channel_first=None,
        explain_func=None,
        explain_func_kwargs=None,
        softmax=False,
        device=None,
        **kwargs,
    ):
        assert (channel_first, device, kwargs) == (True, "cpu", {})
        assert x_batch.shape == (1, CHANNELS, SIDE, SIDE)
        assert y_batch.shape == (1,)
        assert a_batch.shape == (1, 1, SIDE, SIDE)
        self.soft, self.explain_func = softmax, explain_func
        return self.evaluate(model, x_batch, y_batch, a_batch, s_batch)

    def evaluate(self, model, x, y, a, s):
        assert s is None
        a[:] *= self.factor  # a library may well work in place
        return [a.sum() + 1000 * self.soft]


class Random(Fake):
    def evaluate(self, model, x, y, a, s):
        return np.random.rand(1) + 10 * random.random() + 100 * torch.rand(1).numpy()


class Shaky(Fake):
    """The largest change of the map under noise: asks for as many maps as the label says."""

    score_direction = "lower"

    def evaluate(self, model, x, y, a, s):
        changes = []
        for _ in range(1 + int(y[0])):
            noisy = x + np.random.uniform(-0.1, 0.1, x.shape)
            changed = self.explain_func(model=model, inputs=noisy, targets=y, device="cpu")
            assert changed.shape == (1, 1, SIDE, SIDE)
            changes.append(np.abs(a - changed).max())
        return np.array([max(changes)])


class Twisted(Fake):
    """Changes the image by what it learns of the maps."""

    def evaluate(self, model, x, y, a, s):
        for _ in range(2):
            x = x + self.explain_func(model=model, inputs=x + 1, targets=y)
        return [x.sum()]


class Intact(Fake):
    def evaluate(self, model, x, y, a, s):
        return [np.abs(self.explain_func(model=model, inputs=x, targets=y) - a).max()]


class OtherClass(Fake):
    def evaluate(self, model, x, y, a, s):
        return self.explain_func(model=model, inputs=x, targets=y + 1)


class OtherModel(Fake):
    def evaluate(self, model, x, y, a, s):
        return self.explain_func(model=nn.Sequential(model), inputs=x, targets=y)


class Inside(Fake):
    evaluation_category = types.SimpleNamespace(value="Localisation")

    def evaluate(self, model, x, y, a, s):
        assert s.shape == (1, 1, SIDE, SIDE)
        assert s.dtype == bool
        return [a[s].sum() / a.sum()]


class Curve(Fake):
    def evaluate(self, model, x, y, a, s):
        self.evaluation_scores = [[4.0, 2.0, 0.0]]
        return self.evaluation_scores

    @property
    def get_auc_score(self):
        return sys.modules["quantus.helpers.utils"].calculate_auc(self.evaluation_scores[0])


class Steps(Fake):
    def evaluate(self, model, x, y, a, s):
        return {10: 1.0, 20: 1, 30: np.float64(0), 40: False}


class Many(Fake):
    def evaluate(self, model, x, y, a, s):
        return [[1.0, 2.0]]


class Layers(Fake):
    def evaluate(self, model, x, y, a, s):
        return {"conv": [1.0], "head": [2.0]}


class Words(Fake):
    def evaluate(self, model, x, y, a, s):
        return ["good"]


class Picky(Fake):
    """Refuses constant maps in the way of Quantus."""

    def evaluate(self, model, x, y, a, s):
        def assert_attributions():
            assert a.max() > a.min(), "uniform"

        assert_attributions()
        return [1.0]


class Strict(Fake):
    def evaluate(self, model, x, y, a, s):
        raise AssertionError("subset_size is too large")


class Aimless(Fake):
    score_direction = None


class RegionPerturbation(Fake):
    score_direction = Direction.LOWER

    def __init__(self, order="morf", **kwargs):
        super().__init__(**kwargs)


class Needy(Fake):
    def __init__(self, layer, **kwargs):
        super().__init__(**kwargs)


class Sufficiency(Fake):
    pass


class MPRT(Fake):
    pass


class RandomLogit(Fake):
    pass


class Brightest(Fake):
    """For the tiny world: any shape."""

    def __call__(self, model, x_batch, y_batch, a_batch, explain_func):
        changed = explain_func(model=model, inputs=x_batch + np.random.rand(1), targets=y_batch)
        return [a_batch.max() - changed.max()]


def modules():
    """Quantus and the modules of it that the adapter touches."""
    fake, helpers, utils = (
        types.ModuleType(name) for name in ("quantus", "quantus.helpers", "quantus.helpers.utils")
    )
    utils.calculate_auc = lambda values: float(np.sum(values[:-1]) + np.sum(values[1:])) / 2
    robust = {"Shaky": Shaky, "Twisted": Twisted, "Intact": Intact, "Brightest": Brightest}
    others = (Fake, Random, OtherClass, OtherModel, Inside, Curve, Steps, Many, Layers, Words)
    others += (Picky, Strict, Aimless, RegionPerturbation, Needy, Sufficiency, MPRT, RandomLogit)
    fake.AVAILABLE_METRICS = {
        "Robustness": robust,
        "Others": {f"The {metric.__name__} ": metric for metric in others},
    }
    return fake, helpers, utils
