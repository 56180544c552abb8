"""Every method on the main families of torchvision and timm: exact, or not applicable and why.

    python benchmarks/networks.py                              # print the table
    python benchmarks/networks.py "timm:*" --write docs/networks.md

Networks have random weights and get one small image. 'Exact' means that the method runs there, that
its maps are finite, and that the oracle for methods of its kind holds:

- the prepared graph has the logits of the author's network, and its gradient, to 1e-5 of the largest;
- maps of DeepLIFT and DeepSHAP sum to the difference of logits that they explain, to 1e-3;
- relevance is conserved by LRP in the same network without biases, to 1e-3;
- guided backpropagation and deconvolution are what other derivatives of every rectifier give in the
  author's network, where torch's own functions are intercepted, to 1e-5 of the largest;
- attention is what the author's network computes, to 1e-5.

Methods that need no more than logits and gradients are exact where these are. Costly ones take fewer
samples here.
"""

from __future__ import annotations

import argparse
import copy
import fnmatch
import inspect
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from tabulate import tabulate
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
    perturbation,
    smooth,
    surrogates,
)
from attrcheck.methods import method as methods

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
    "vgg11": {},
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
    "swin_tiny_patch4_window7_224": {},
    "mixer_s32_224": {},
}
NETWORKS = (
    *(f"torchvision:{name}" for name in TORCHVISION),
    *(f"timm:{name}" for name in TIMM),
)
SIDE = 64
SIDES = {"inception": 96, "swin_tiny": 224, "mixer": 224}
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
        norm.momentum = None  # type: ignore[assignment]
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


def hasten() -> None:
    """Let costly methods take few samples and steps."""
    integrated.STEPS, integrated.PLACES = 3, 1  # type: ignore[misc]
    for kind in (smooth.OURS, smooth.IDSDS, smooth.SOUNDNESS):
        vars(kind)["samples"] = 2
    perturbation.MASKS = perturbation.FEW_MASKS = 10  # type: ignore[misc]
    perturbation.WINDOW = perturbation.STRIDE = 16  # type: ignore[misc]
    surrogates.SAMPLES = 60  # type: ignore[misc]
    extremal_perturbation.STEPS = 2  # type: ignore[misc]
    bottleneck.STEPS, bottleneck.SAMPLES = 1, 2  # type: ignore[misc]
    whole = cams.stage_activations

    def few_channels(*arguments: Any) -> tuple[Tensor, Tensor]:
        activations, logits = whole(*arguments)
        return activations[:, :8], logits

    cams.stage_activations = few_channels  # Score-CAM runs the network once a channel


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
        if reason := method.not_applicable(self.model):
            return f"{NOT_APPLICABLE}{reason}"
        try:
            maps = attribute(method, self.model, self.images, self.targets)
            right = self.holds(method)
        except Exception as error:
            return f"raised {type(error).__name__}: {error}"
        if maps.shape[-2:] != self.images.shape[2:] or not maps.isfinite().all():
            return "wrong: maps are not finite"
        return EXACT if right else "wrong: its oracle disagrees"

    def holds(self, method: Method) -> bool:
        """Whether the oracle for methods of its kind holds."""
        images, targets = self.exact_images, self.targets
        if method.name in COMPLETE:
            total = attribute(method, self.exact_model, images, targets).sum()
            others = (
                noise(images.shape[2], 10).to(images) if method.name == "deepshap" else images * 0
            )
            baseline = of(self.exact_network, others).mean(0)
            wanted = (of(self.exact_network, images)[0] - baseline)[targets[0]]
            return self.same_passes and close(total, wanted)
        if "conservation_without_biases" in method.axioms:
            bare = without_biases(self.exact_model)
            best = of(bare, images).abs().argmax(1)
            total = attribute(method, bare, images, best).sum()
            return self.same_passes and close(total, of(bare, images)[0, best[0]])
        if method.name in RECTIFYING:
            maps = attribute(method, self.exact_model, images, targets)
            with RECTIFYING[method.name]():
                wanted = gradient(self.exact_network, images, targets).sum(1)
            return self.same_passes and equal(maps, wanted)
        if method.family == "transformer":
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
    """Positive gradients alone pass back out of a rectifier, whose derivative they are then given."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "").rstrip("_")
        if name not in RECTIFIERS:
            return func(*args, **(kwargs or {}))
        options = {key: value for key, value in (kwargs or {}).items() if key != "inplace"}
        pure = getattr(torch.nn.functional, name)
        settings = args[1:] if name not in SWITCHED else ()
        value = self.rule(lambda x: pure(x, *settings, **options), args[0])
        if value.requires_grad:
            value.register_hook(lambda upstream: upstream.clamp(min=0))
        return value

    def rule(self, rectifier: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        return rectifier(x)


class Deconvolved(Guided):
    """Positive gradients alone pass back through a rectifier."""

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
SWITCHED = ("relu", "relu6", "selu", "silu", "mish", "hardswish")
"""Functions whose only setting is whether they work in place."""
RECTIFYING = {"guided_backprop": Guided, "deconvolution": Deconvolved}
COMPLETE = ("deeplift", "deepshap")
EXACT, NOT_APPLICABLE = "exact", "not applicable: "


def survey(names: Iterable[str], say: Callable[[str], None]) -> dict[str, dict[str, str]]:
    """The outcome of every method on every network."""
    outcomes = {}
    for name in names:
        start = time.perf_counter()
        subject = Subject(name)
        outcomes[name] = {known: subject.outcome(methods.get(known)) for known in methods}
        exact = sum(outcome == EXACT for outcome in outcomes[name].values())
        say(f"{name}: {exact} methods exact, {time.perf_counter() - start:.0f} s")
        for known, outcome in outcomes[name].items():
            if outcome != EXACT and not outcome.startswith(NOT_APPLICABLE):
                say(f"  {known}: {outcome}")
    return outcomes


def table(outcomes: dict[str, dict[str, str]]) -> str:
    """One row per network, one column for all methods with the same outcomes; reasons below."""
    columns: dict[tuple[str, ...], list[str]] = {}
    for known in methods:
        columns.setdefault(tuple(row[known] for row in outcomes.values()), []).append(known)
    reasons: dict[str, int] = {}

    def cell(outcome: str) -> str:
        if outcome == EXACT:
            return EXACT
        return str(reasons.setdefault(outcome.removeprefix(NOT_APPLICABLE), len(reasons) + 1))

    ordered = sorted(columns, key=lambda column: (-column.count(EXACT), columns[column]))
    rows = [
        [name, *(cell(column[place]) for column in ordered)] for place, name in enumerate(outcomes)
    ]
    letters = [chr(ord("A") + place) for place in range(len(ordered))]
    groups = [
        f"- **{letter}**: {', '.join(columns[column])}"
        for letter, column in zip(letters, ordered, strict=True)
    ]
    notes = [f"{number}. {reason}" for reason, number in reasons.items()]
    body = tabulate(rows, ["network", *letters], "github", disable_numparse=True)
    return "\n".join([*groups, "", body, "", *notes])


DOCUMENT = """# Which method is right on which network

Made by `python benchmarks/networks.py --write docs/networks.md`, with torch {torch}, torchvision {torchvision}
and timm {timm}; tested by `pytest -m slow tests/graph/test_networks.py`. A number is a reason, below, why
methods are not applicable. *Exact* means that an oracle holds:

{oracles}

Methods:

{table}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description="Every method on the main families of networks")
    parser.add_argument("networks", nargs="?", default="*", help="a glob; default: all")
    parser.add_argument("--write", type=Path, help="the document to write")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    hasten()
    names = fnmatch.filter(NETWORKS, chosen.networks)
    outcomes = survey(names, lambda line: print(line, file=sys.stderr, flush=True))
    text = table(outcomes)
    if chosen.write:
        versions = {name: version(name) for name in ("torch", "torchvision", "timm")}
        oracles = (__doc__ or "").partition("holds:\n\n")[2].strip()
        chosen.write.write_text(DOCUMENT.format(**versions, oracles=oracles, table=text))
    else:
        print(text)
    known = (EXACT, NOT_APPLICABLE)
    return int(any(not o.startswith(known) for row in outcomes.values() for o in row.values()))


if __name__ == "__main__":
    sys.exit(main())
