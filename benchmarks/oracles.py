"""Networks of torchvision and timm, and oracles that say whether a method is right on one."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.overrides import TorchFunctionMode

from attrcheck.adapters.vision import timm, torchvision
from attrcheck.contracts import Dataset, Method
from attrcheck.graph import kinds
from attrcheck.graph.exposing import FUNCTIONS
from attrcheck.graph.landmarks import attentions
from attrcheck.graph.preparing import NotTraceable, prepare
from attrcheck.methods import (
    bottleneck,
    cams,
    extremal_perturbation,
    integrated,
    paths,
    perturbation,
    stages,
    surrogates,
)
from attrcheck.methods.deeplift import UnboundedError
from attrcheck.methods.noise import IDSDS, OURS, SOUNDNESS

CLASSES = 10
EQUAL, SUMS = 1e-5, 1e-3
"""How far what should be equal, or sum to the same, may be apart."""
TORCHVISION: dict[str, dict[str, Any]] = {
    "resnet18": {},
    "vgg11_bn": {},
    "inception_v3": {"init_weights": False},
    "googlenet": {"init_weights": False},
    "densenet121": {},
    "efficientnet_b0": {},
    "mobilenet_v2": {},
    "mobilenet_v3_small": {},
    "squeezenet1_1": {},
    "regnet_y_400mf": {},
    "convnext_tiny": {},
    "vit_b_32": {"image_size": 64},
    "swin_t": {},
}
TIMM: dict[str, dict[str, Any]] = {
    "resnet18": {},
    "vgg11": {"mlp_ratio": 0.02},
    "inception_v3": {},
    "inception_v4": {},
    "densenet121": {},
    "efficientnet_b0": {},
    "efficientnet_lite0": {},
    "tf_efficientnet_lite0": {},
    "mobilenetv2_050": {},
    "mobilenetv3_small_050": {},
    "regnety_002": {},
    "convnext_atto": {},
    "vit_tiny_patch16_224": {"img_size": 64},
    "deit_tiny_patch16_224": {"img_size": 64},
    "deit_tiny_distilled_patch16_224": {"img_size": 64},
    "swin_tiny_patch4_window7_224": {"img_size": 64, "window_size": 2},
    "mixer_s32_224": {"img_size": 64},
}
NETWORKS = (
    *(f"torchvision:{name}" for name in TORCHVISION),
    *(f"timm:{name}" for name in TIMM),
)
SIDE = 64
SIDES = {"inception": 80}
"""Of the images, for networks that take no smaller ones."""


def build(name: str) -> tuple[nn.Module, Tensor]:
    """A network with random weights that all matter, and an image for it."""
    library, _, model = name.partition(":")
    side = next((side for part, side in SIDES.items() if model.startswith(part)), SIDE)
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if library == "timm":
            network = timm.create_model(model, num_classes=CLASSES, **TIMM[model])
        else:
            settings = {"num_classes": CLASSES, **TORCHVISION[model]}
            network = torchvision.models.get_model(model, weights=None, **settings)
    if model == "vgg11_bn":  # nearly all of its weights are here
        widths = (512 * 49, 128), (128, 128), (128, CLASSES)
        for place, (inputs, outputs) in zip((0, 3, 6), widths, strict=True):
            network.classifier[place] = nn.Linear(inputs, outputs)
    images = noise(side, 8)
    network.eval()
    for label, weight in network.named_parameters():
        if label.endswith(("gamma", "layer_scale")):
            nn.init.constant_(weight, 0.5)
        elif weight.ndim > 1 and not weight.any():
            nn.init.normal_(weight, 0, 0.1)
    norms = [part for part in network.modules() if isinstance(part, nn.BatchNorm2d)]
    for norm in norms:
        nn.init.uniform_(norm.weight, 0.5, 1.5)
        nn.init.normal_(norm.bias, 0, 0.3)
        norm.momentum = None
        norm.train()
        norm.reset_running_stats()
    network.requires_grad_(False)
    if norms:
        network(images)
    return network.eval(), images[:1]


def noise(side: int, count: int) -> Tensor:
    """Smooth images of about unit variance."""
    pixels = torch.randn(count, 3, side, side, generator=torch.Generator().manual_seed(1))
    return 3 * nn.functional.avg_pool2d(pixels, 5, 1, 2)


def few_channels(*arguments: Any) -> tuple[Tensor, Tensor]:
    """The stage's first channels, and logits: Score-CAM runs the network once per channel."""
    activations, logits = stages.stage_activations(*arguments)
    return activations[:, :8], logits


FEW: tuple[tuple[Any, dict[str, Any]], ...] = (
    (integrated, {"STEPS": 3, "PLACES": 1}),
    (paths, {"STEPS": 3, "BLURS": 3}),
    *((kind, {"samples": 2}) for kind in (OURS, IDSDS, SOUNDNESS)),
    (perturbation, {"MASKS": 10, "FEW_MASKS": 10, "WINDOW": 2, "STRIDE": 4}),
    (surrogates, {"SAMPLES": 60}),
    (extremal_perturbation, {"STEPS": 2}),
    (bottleneck, {"STEPS": 1, "SAMPLES": 2}),
    (cams, {"stage_activations": few_channels}),
)


@contextmanager
def hasty() -> Iterator[None]:
    """Let costly methods take few samples and steps."""
    before = [{name: vars(part)[name] for name in settings} for part, settings in FEW]
    for part, settings in FEW:
        vars(part).update(settings)
    try:
        yield
    finally:
        for (part, _), settings in zip(FEW, before, strict=True):
            vars(part).update(settings)


def attribute(method: Method, model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """The map of a method, as the engine asks for it."""
    known = noise(images.shape[2], 10).to(images)
    labels, ids = torch.zeros(10, dtype=torch.int64), tuple(map(str, range(10)))
    data = Dataset("noise", known, labels, CLASSES, (0.0,) * 3, (1.0,) * 3, ids)
    asked = inspect.signature(method.attribute).parameters
    offers = {"seeds": (5,), "dataset": data}
    optional = {name: value for name, value in offers.items() if name in asked}
    maps: Tensor = method.attribute(model, images, targets, **optional)
    return maps


class Subject:
    """A network in the author's form and prepared, in both precisions, and what is known of it."""

    def __init__(self, name: str) -> None:
        self.network, self.images = build(name)
        self.exact_network, self.exact_images = (
            copy.deepcopy(self.network).double(),
            self.images.double(),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotTraceable)
            self.model = prepare(self.network, self.images)
            self.exact_model = prepare(self.exact_network, self.exact_images)
        with torch.no_grad():
            self.targets = self.exact_network(self.exact_images).abs().argmax(1)

    @cached_property
    def same_passes(self) -> bool:
        """Whether logits and gradient of the prepared graph are those of the author's network."""
        one, other = (
            (of(network, self.exact_images), gradient(network, self.exact_images, self.targets))
            for network in (self.exact_network, self.exact_model)
        )
        return all(map(equal, one, other))

    def outcome(self, method: Method) -> str:
        """'exact', or why not: 'not applicable: ...', 'wrong: ...' or what it raised."""
        if method.dummy:
            return EXACT  # whatever the network is
        if reason := method.not_applicable(self.model):
            return f"{NOT_APPLICABLE}{reason}"
        try:
            if method.name in (*COMPLETE, *RECTIFYING):
                maps = attribute(method, self.exact_model, self.exact_images, self.targets)
            else:
                maps = attribute(method, self.model, self.images, self.targets)
            right = self.holds(method, maps)
        except UnboundedError:
            return f"{NOT_APPLICABLE}{UNBOUNDED}"
        except Exception as error:
            return f"raised {type(error).__name__}: {error}"
        if maps.shape[-2:] != self.images.shape[2:] or not maps.isfinite().all():
            return "wrong: maps are not finite"
        return EXACT if right else "wrong: its oracle disagrees"

    def holds(self, method: Method, maps: Tensor) -> bool:
        """Whether the oracle for methods of its kind holds."""
        images, targets = self.exact_images, self.targets
        if method.name in COMPLETE:
            others = (
                noise(images.shape[2], 10).to(images) if method.name == "deepshap" else images * 0
            )
            baseline = of(self.exact_network, others).mean(0)
            wanted = (of(self.exact_network, images)[0] - baseline)[targets[0]]
            return self.same_passes and close(maps.sum(), wanted)
        if "conservation_without_biases" in method.axioms:
            bare = without_biases(self.exact_model)
            best = of(bare, images).abs().argmax(1)
            total = attribute(method, bare, images, best).sum()
            return self.same_passes and close(total, of(bare, images)[0, best[0]])
        if method.name in RECTIFYING:
            with RECTIFYING[method.name]():
                wanted = gradient(self.exact_network, images, targets).sum(1)
            return self.same_passes and equal(maps, wanted)
        if method.name in ATTENDING:
            with Attending() as attending:
                self.exact_network(images)
            graph = Attentions(self.exact_model)
            graph.run(images)
            return self.same_passes and all(
                equal(one, other) for one, other in zip(graph.seen, attending.seen, strict=True)
            )
        return self.same_passes


def of(network: nn.Module, images: Tensor) -> Tensor:
    with torch.no_grad():
        logits: Tensor = network(images.clone())
    return logits


def gradient(network: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    inputs = images.clone().requires_grad_()
    (slopes,) = torch.autograd.grad(network(inputs * 1)[0, targets[0]], inputs)
    return slopes


def equal(one: Tensor, other: Tensor) -> bool:
    return bool((one - other).abs().max() <= EQUAL * other.abs().max())


def close(one: Tensor, other: Tensor) -> bool:
    return bool((one - other).abs() <= SUMS * other.abs())


def without_biases(model: nn.Module) -> nn.Module:
    """A copy in which nothing is added but signals."""
    bare = copy.deepcopy(model)
    for part in bare.modules():
        for name in ("bias", "running_mean"):
            if isinstance(value := getattr(part, name, None), Tensor):
                value.zero_()
    return bare


class Guided(TorchFunctionMode):
    """Only positive gradients pass back through a rectifier, times its derivative."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "").rstrip("_")
        settings = {**dict(zip(("min_val", "max_val"), args[1:], strict=False)), **(kwargs or {})}
        if name == "hardtanh" and (settings["min_val"], settings["max_val"]) == (0, 6):
            name = "relu6"  # which is how nn.ReLU6 computes it
        elif name not in RECTIFIERS:
            return func(*args, **(kwargs or {}))
        options = {key: value for key, value in (kwargs or {}).items() if key in SETTINGS}
        pure = getattr(torch.nn.functional, name)
        others = () if name in SWITCHED else args[1:]
        value: Any = self.rule(lambda x: pure(x, *others, **options), args[0])
        if value.requires_grad:
            value.register_hook(lambda upstream: upstream.clamp(min=0))
        return value

    def rule(self, rectifier: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        return rectifier(x)


class Deconvolved(Guided):
    """Only positive gradients pass back through a rectifier, as they are."""

    def rule(self, rectifier: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        return x + (rectifier(x) - x).detach()


class Attending(TorchFunctionMode):
    """Writes down the attention of every head, as the author's network computes it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Tensor] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        options = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if name == "multi_head_attention_forward":
            options |= {"need_weights": True, "average_attn_weights": False}
            mixed, attention = func(*args, **options)
            self.seen.append(attention)
            return mixed, None
        if name == "scaled_dot_product_attention":
            query, key = args[:2]
            scale = options.get("scale") or query.shape[-1] ** -0.5
            self.seen.append((query @ key.transpose(-2, -1) * scale).softmax(-1))
        return func(*args, **options)


class Attentions(fx.Interpreter):
    """Writes down the attention of every head, as a prepared graph computes it."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.names = {node.name for node in attentions(model)}
        self.seen: list[Tensor] = []

    def run_node(self, n: fx.Node) -> Any:
        value = super().run_node(n)
        if n.name in self.names:
            self.seen.append(value)
        return value


RECTIFIERS = {name for name, (kind, _) in FUNCTIONS.items() if kind in kinds.RECTIFIERS}
SETTINGS = {setting for _, names in FUNCTIONS.values() for setting in names} - {
    "min_val",
    "max_val",
}
SWITCHED = ("relu", "relu6", "selu", "silu", "mish", "hardswish")
"""Functions whose only setting is whether they work in place."""
RECTIFYING = {"guided_backprop": Guided, "deconvolution": Deconvolved}
ATTENDING = ("attention_rollout", "chefer", "chefer_lrp")
COMPLETE = ("deeplift", "deepshap")
EXACT, NOT_APPLICABLE = "exact", "not applicable: "
UNBOUNDED = "with these weights the multipliers of this network grow without bound, which it says"
