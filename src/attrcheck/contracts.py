"""The nouns of attrcheck as pure types: what the rooms of the house hand to each other.

This module imports nothing of attrcheck, and torch and numpy only where they are used: names must
be known in a process that never loads them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from typing import Protocol as Interface

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray
    from PIL.Image import Image
    from torch import Tensor, nn

Rows: TypeAlias = "dict[str, NDArray[np.generic]]"
"""What was observed, by name; the first axis of every array is the image."""

Scores: TypeAlias = Mapping[str, float]
"""Of methods, in one case; higher is better, whatever the protocol says."""

Need: TypeAlias = Literal["masks", "training", "gradients", "architecture"]
"""What a case may need: ground-truth masks or a training split of the dataset; a model that has
gradients, or that can be built without weights and trained anew."""

Over: TypeAlias = Literal["methods", "cases", "protocols", "models", "suite"]
"""What a check ranges over."""


Weights: TypeAlias = Literal["equal", "pair", "family"]
"""What weighs alike on the board: all cases, all dataset x model pairs, all families of
protocols."""

Isolate: TypeAlias = Literal["auto", "on", "off"]
"""Which methods run in processes of their own: a user's, where the system can do it; all; none."""


Precision: TypeAlias = Literal["float32", "tf32", "bfloat16"]
"""With how many digits the predictor computes; methods always compute in float32."""


@dataclass(frozen=True)
class Settings:
    """What the options of a run come to, in one process of it.

    images: of each case; None takes all. images_given: whether that number was asked for; then
    costly protocols take no fewer. memory: bytes that inner batches may take; None: half of what is
    free. sharers: how many processes on the device share that. run: tells this run's records from
    those of others. verify: the share of stored entries that is computed again and compared.
    isolate: which methods run in processes of their own. timeout: seconds that a batch may take
    there; None: for ever. accept_accuracy: whether a model may be as good as chance. shard: images
    of a shard; None: as few as can be. task: which of how many tasks this run is, from 1, if the
    shards are dealt out to several. keep_maps: bytes of maps that stay in the store; None: all.
    precision: of the predictor.
    """

    profile: str
    images: int | None
    seed: int
    methods: tuple[str, ...]
    store: Path
    fresh: bool
    run: str
    device: str
    threads: int
    memory: int | None
    sharers: int = 1
    images_given: bool = False
    verify: float = 0.0
    isolate: Isolate = "off"
    timeout: float | None = None
    accept_accuracy: bool = False
    shard: int | None = None
    task: tuple[int, int] | None = None
    keep_maps: int | None = None
    precision: Precision = "float32"


@dataclass(frozen=True)
class Case:
    """One protocol on one model for one dataset; ranks all methods."""

    dataset: str
    model: str
    protocol: str

    @classmethod
    def of(cls, text: str) -> Case:
        """The case with this id."""
        return cls(*text.split("-"))

    @property
    def id(self) -> str:
        """Names joined by hyphens, which no name contains."""
        return f"{self.dataset}-{self.model}-{self.protocol}"

    @property
    def names(self) -> tuple[str, str, str]:
        """Dataset, model and protocol."""
        return self.dataset, self.model, self.protocol

    @property
    def pair(self) -> str:
        """Dataset and model: what is loaded, cached and resampled together."""
        return f"{self.dataset}-{self.model}"


@dataclass(frozen=True)
class Preprocessing:
    """What a network wants done to a picture: resize it, cut out the middle, normalise it.

    size: height and width of what it takes. resize: what the shorter side, or height and width, are
    brought to first; None: nothing is resized. interpolation: as Pillow calls it. mean, std: of
    values in [0, 1], one per channel; for one channel pictures are turned to grey. rounds_down:
    where the middle begins if it lies between two pixels: at the first of them, as Hugging Face
    has it, or where torchvision rounds it to.
    """

    size: tuple[int, int]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    resize: int | tuple[int, int] | None = None
    interpolation: str = "bilinear"
    rounds_down: bool = False


@dataclass(frozen=True)
class Pictures:
    """Pictures of any size with their labels, each read when it is asked for.

    What a dataset may be before a model is known: every network gets them as it wants them.

    read: the picture at an index, in RGB or grey; several threads may ask at once. fingerprint:
    tells the bytes of the pictures at some indices, and of their masks, from any others.
    labels: one int each. class_names: one per class, to be matched with a model's own.
    mask: the ground truth of a picture and as large as it; what is not black belongs to it.
    training: the pictures that models learn from. preprocessing: for models that have none.
    Pictures come in a fixed order of which every prefix is a fair sample.
    """

    name: str
    read: Callable[[int], Image]
    fingerprint: Callable[[Sequence[int]], str]
    labels: tuple[int, ...]
    ids: tuple[str, ...]
    class_names: tuple[str, ...]
    mask: Callable[[int], Image] | None = None
    training: Callable[[], Pictures] | None = None
    preprocessing: Preprocessing | None = None

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return len(self.class_names)

    @property
    def channels(self) -> int:
        """The number of channels: of colours, unless it is said otherwise."""
        return len(self.preprocessing.mean) if self.preprocessing else 3


class Pixels(Interface):
    """Images [N, C, H, W] or masks [N, H, W] that are made when they are asked for.

    To take some of it gives a tensor, as it would of a tensor; `part` takes some without reading.
    """

    def __len__(self) -> int: ...
    def __getitem__(self, part: slice | Tensor) -> Tensor: ...
    @property
    def shape(self) -> torch.Size: ...  # noqa: D102
    def part(self, part: slice | Tensor) -> Pixels: ...  # noqa: D102
    def fingerprint(self) -> str: ...  # noqa: D102


@dataclass(frozen=True)
class Model:
    """A network, how it wants its pictures, and its classes in the order of its logits.

    What a registered builder may return in place of the network alone. preprocessing: None: images
    as they are, with the mean and std of the dataset. class_names: (): those of the dataset.
    """

    network: nn.Module
    preprocessing: Preprocessing | None = None
    class_names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dataset:
    """The evaluation split of a dataset; `training` gives the images that models learn from.

    images [N, C, H, W] float32 in [0, 1]; labels [N] int64; masks [N, H, W] bool or None. Those of
    pictures are made when a slice of them is taken. mean, std: those that the model wants.
    Images come in a fixed order of which every prefix is a fair sample.
    """

    name: str
    images: Tensor | Pixels
    labels: Tensor
    classes: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    ids: tuple[str, ...]
    masks: Tensor | Pixels | None = None
    training: Callable[[], tuple[Tensor | Pixels, Tensor]] | None = None
    class_names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.images)

    @property
    def channels(self) -> int:
        """The number of channels of an image."""
        return int(self.images.shape[1])

    def head(self, n: int | None) -> Dataset:
        """The first n images, or all."""
        return self if n is None or n >= len(self) else self.part(slice(n))

    def part(self, part: slice) -> Dataset:
        """Some of the images; those that are made on demand are not made yet."""

        def some(pixels: Tensor | Pixels) -> Tensor | Pixels:
            return pixels.part(part) if hasattr(pixels, "part") else pixels[part]

        return replace(
            self,
            images=some(self.images),
            labels=self.labels[part],
            ids=self.ids[part],
            masks=None if self.masks is None else some(self.masks),
        )

    def normalise(self, images: Tensor) -> Tensor:
        """Images as a model wants them: zero is the dataset's mean."""
        mean, std = self._statistics(images)
        return (images - mean) / std

    def denormalise(self, images: Tensor) -> Tensor:
        """The inverse of `normalise`: images in [0, 1]."""
        mean, std = self._statistics(images)
        return images * std + mean

    def _statistics(self, images: Tensor) -> tuple[Tensor, Tensor]:
        def there(values: tuple[float, ...]) -> Tensor:
            row = images.new_tensor(values, device="cpu").view(1, -1, 1, 1)
            return row.to(images.device, non_blocking=images.is_cuda)

        return there(self.mean), there(self.std)


@dataclass(frozen=True)
class Method:
    """A competitor: `attribute(model, images, targets)` gives maps, one signed float per pixel.

    It gets the network as its author built it, in eval mode, normalised images (zero is the
    dataset's mean) and class indices, and returns [N, H, W], or [N, C, H, W], which is summed over
    channels. By keyword it may ask for `seeds`, one int per image to draw random numbers from, and
    for the `dataset`, whose mean and std undo the normalisation.

    prepared: whether it gets the prepared graph in place of the network, see `graph.preparing`;
    None: if its code is attrcheck's, which takes networks apart.
    not_applicable: says why the method cannot be right on what it gets; None where it can.
    constant: why a map may be constant; without a reason a constant map is an error.
    dummy: ignores the model; sets the floor.
    known_failures: checks that the method is known to fail, and why; passing one is then an error.
    axioms: those that it claims to keep, and within what relative error; see the check `axioms`.
    absolute_of: the method whose maps this one takes the absolute values of, so they are shared.
    default: whether it runs unasked in any profile but full; None: if its cost is small.
    family, reference: for people. passes: forward and backward passes per image.
    depends: what its maps depend on beside its code, as "file:PATH", "env:NAME" or "package:NAME".
    """

    name: str
    attribute: Callable[..., Tensor]
    not_applicable: Callable[[nn.Module], str | None] = lambda model: None
    constant: str = ""
    dummy: bool = False
    known_failures: Mapping[str, str] = field(default_factory=dict)
    axioms: Mapping[str, float] = field(default_factory=dict)
    absolute_of: str = ""
    default: bool | None = None
    family: str = "own"
    passes: tuple[int, int] = (1, 1)
    reference: str = ""
    depends: Sequence[str] = ()
    prepared: bool | None = None

    def __post_init__(self) -> None:
        if self.prepared is None:
            object.__setattr__(self, "prepared", _ours(self.attribute))

    @property
    def cost(self) -> int:
        """In forward passes; a backward pass takes about as long as two."""
        forward, backward = self.passes
        return forward + 2 * backward


def _ours(function: Any) -> bool:
    """Whether a function, or the one that a partial is of, comes with attrcheck."""
    while isinstance(function, partial):
        function = function.func
    return str(getattr(function, "__module__", "")).startswith(f"{__package__}.")


@dataclass(frozen=True)
class Tuning:
    """What a model learns to cope with: the loss of one cell of a grid to a registered removal.

    share: if it is not 0, of random pixels in place of a cell, up to this share of the image.
    """

    grid: int = 4
    removal: str = "mean"
    share: float = 0.0

    @property
    def key(self) -> str:
        """The name of its weights, where others have a percentage of training."""
        lost = f"share_{self.share:g}" if self.share else f"{self.grid}"
        return f"tuned.{self.removal}_{lost}"


@dataclass(frozen=True)
class Disconnection:
    """The one cell of a side x side grid of images that the head of a network sees, row by row.

    apart: whether each cell goes through the network by itself, so that no pixel of the others can
    influence a logit; else all go through it up to its last stage together.
    """

    side: int
    cell: int
    apart: bool


@dataclass(frozen=True)
class Batch:
    """Some images of a case, normalised, with labels and one seed per image to break ties.

    intact: `correct`, `probability` and `logit` of the images as they are, observed once.
    masks: the ground truth [N, H, W], where the dataset has one. chance: the accuracy of a guess.
    attribute: the method that is scored, applied to other images in place of these:
    [N, C, H, W] -> [N, H, W].
    """

    images: Tensor
    labels: Tensor
    seeds: tuple[int, ...]
    intact: Rows
    masks: Tensor | None = None
    chance: float = 0.0
    attribute: Callable[[Tensor], Tensor] | None = None


@dataclass(frozen=True)
class Retraining:
    """What a protocol trains networks of its own on: training images, and the method's maps.

    train: takes images in place of these and a number of epochs, returns a new network of the
    model's kind.
    """

    images: Tensor
    seeds: tuple[int, ...]
    maps: Tensor
    train: Callable[[Tensor, int], nn.Module]


@dataclass(frozen=True)
class Reduction:
    """A score, the curve behind it and, where the score is their mean, the scores of the images.

    A score that is not defined is NaN: it is left out of the ranking, and counted. So are images
    whose own score is NaN, and others that the score says nothing about: `undefined` in all.
    errors: the standard errors of the curve's values, where these are means over images.
    """

    score: float
    curve: tuple[list[float], list[float]] | None = None
    per_image: NDArray[np.float64] | None = None
    undefined: int = 0
    errors: NDArray[np.float64] | None = None

    @classmethod
    def mean(cls, per_image: NDArray[np.generic]) -> Reduction:
        """The mean over the images that have a score, NaN if none has."""
        import numpy as np

        scores = per_image.astype(np.float64)
        defined = scores[np.isfinite(scores)]
        score = float(defined.mean()) if len(defined) else float("nan")
        return cls(score, per_image=scores, undefined=len(scores) - len(defined))

    def means(self, counts: NDArray[Any]) -> NDArray[np.float64] | None:
        """The mean when image i is drawn counts[b, i] times, for each b; NaN where undefined.

        None where the score is not the mean of the images' scores.
        """
        import numpy as np

        if self.per_image is None:
            return None
        defined = np.isfinite(self.per_image)
        weights = counts if defined.all() else np.ascontiguousarray(counts[:, defined])
        with np.errstate(invalid="ignore"):
            return np.asarray(weights @ self.per_image[defined] / weights.sum(axis=1))


class Shared(ABC):
    """What a protocol observes without a map: once, for all methods and all protocols.

    Subclasses are frozen dataclasses: their fields say what is observed.
    """

    @property
    @abstractmethod
    def key(self) -> str:
        """Its name in the store."""

    @abstractmethod
    def observe(self, model: nn.Module, batch: Batch) -> Rows:
        """Rows that do not depend on maps."""


class Protocol(ABC):
    """Two pure functions: `observe` never looks across images, `reduce` never sees the model.

    Subclasses are frozen dataclasses: their fields are the settings, and part of every record. A
    field called `removal` names the registered removal that is used.

    bounds: the limits of a score. sees: whether the values of a map count, or only their `order`,
    so that no strictly increasing transform of it changes a row.
    needs: what a dataset or model must offer, else there is no such case.
    least_images: with fewer, a warning. most_images: more than these do not take part.
    tuning: the fine-tuning that the model goes through before it is attributed and observed.
    training_images: how many to train networks on that observe in place of the model; see
    `retrain`.
    arranges: whether it makes images of its own of those of the dataset; see `arrange`.
    shared: rows that need no map.
    """

    higher_is_better: bool
    bounds: tuple[float, float] = (-inf, inf)
    sees: Literal["order", "values"] = "values"
    needs: tuple[Need, ...] = ()
    least_images: int = 1
    most_images: int | None = None
    tuning: Tuning | None = None
    training_images: int = 0
    arranges: bool = False

    @property
    def shared(self) -> Shared | None:
        """What all methods share; None: nothing."""
        return None

    def observe_shared(self, model: nn.Module, batch: Batch) -> Rows:
        """The shared rows of a batch, where nobody keeps them."""
        return self.shared.observe(model, batch) if self.shared else {}

    @property
    def observation(self) -> str:
        """The name of what is observed; protocols of one class and one name share their rows."""
        return ""

    @property
    def parts(self) -> Mapping[str, Protocol]:
        """Protocols whose rows this one is reduced from, `row` of `part` as `part_row`.

        What was observed of them is shared: such a protocol needs no pass of its own. Each part of
        one that `arranges` images arranges its own.
        """
        return {}

    def arrange(self, pair: Pair) -> Dataset:
        """Images to attribute in place of the pair's, with masks, if the protocol `arranges` some.

        One for each image, of the same id. NotApplicableError if the model cannot take them.
        """
        raise TypeError(f"{type(self).__name__} arranges images, but has no `arrange`")

    @property
    def disconnection(self) -> Disconnection | None:
        """What is done to networks that see grids which the protocol `arranges`; None: nothing."""
        return None

    def retrain(self, retraining: Retraining) -> nn.Module:
        """What `observe` gets in place of the model, if there are `training_images`."""
        raise TypeError(f"{type(self).__name__} has training_images, but no `retrain`")

    @abstractmethod
    def observe(self, model: nn.Module, batch: Batch, maps: Tensor, shared: Rows) -> Rows:
        """Rows of what the model does when `maps` [N, H, W] guide the removal."""

    def settle(self, competitors: Sequence[Rows]) -> Protocol:
        """The protocol that is fair to all of these; most score a method without seeing others."""
        return self

    @abstractmethod
    def reduce(self, rows: Rows) -> Reduction:
        """The score of all rows together."""

    def resample(self, rows: Rows, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """The score when image i is drawn counts[b, i] times, for each b; NaN where undefined.

        A weighted mean where the score is one, else all rows are reduced anew.
        """
        import numpy as np

        if (means := self.reduce(rows).means(counts)) is not None:
            return means
        draws = (np.repeat(np.arange(counts.shape[1]), row) for row in counts)
        reductions = (
            self.reduce({name: row[draw] for name, row in rows.items()}) for draw in draws
        )
        return np.array([reduction.score for reduction in reductions])


class Pair(Interface):
    """Dataset x model, loaded: what a check works with.

    network: prepared, for methods to take apart. original: as its author built it, for those that
    do not. predictor: fast and out of the methods' reach, for protocols to ask. images, labels:
    normalised, on the device. tuned: what is known of its fine-tuning, if it had any. reference:
    the whole dataset, however few images are used.
    """

    def __hash__(self) -> int:
        """By identity, so that what is made of a pair can be remembered."""

    @property
    def dataset(self) -> Dataset: ...  # noqa: D102
    @property
    def model(self) -> str: ...  # noqa: D102
    @property
    def network(self) -> nn.Module: ...  # noqa: D102
    @property
    def original(self) -> nn.Module: ...  # noqa: D102
    @property
    def predictor(self) -> nn.Module: ...  # noqa: D102
    @property
    def images(self) -> Tensor: ...  # noqa: D102
    @property
    def labels(self) -> Tensor: ...  # noqa: D102
    @property
    def tuned(self) -> Mapping[str, Any]: ...  # noqa: D102
    @property
    def reference(self) -> Dataset: ...  # noqa: D102

    @property
    def name(self) -> str:
        """As in the ids of its cases: dataset-model."""

    def given(self, method: Method) -> nn.Module:
        """The network that a method gets: prepared if it asks for that, else as it was built."""

    def slices(self, images: int | None = None) -> Iterator[slice]:
        """The batches that all images, or the first of them, are cut into, alike in every run."""

    def batch(self, part: slice, seed: int, intact: Rows) -> Batch:
        """Some of the images, as a protocol gets them."""

    def seeds(self, part: slice, seed: int, *purpose: str) -> tuple[int, ...]:
        """One seed per image, from the run's seed, the image's name and the purpose."""

    def attribute(
        self, method: Method, part: slice, seed: int = 0, images: Tensor | None = None
    ) -> NDArray[np.float32]:
        """The method's checked maps of some of the images, or of others in their place."""

    def altered(self, how: str, **changes: Any) -> Pair:
        """The pair with other networks, images or labels; `how` tells its records.

        A network may be given as a `Later`: records that are there need none.
        """

    def elsewhere(self, dataset: str, images: int) -> Pair:
        """The same model on the first images of another dataset."""

    @property
    def remote(self) -> Remote | None:
        """What runs methods in processes of their own; None: all run in this one."""

    def spoilt(self) -> None:
        """A method may have changed what it was handed: load all of it anew when next asked for."""


@dataclass(frozen=True)
class Later:
    """Something that is made when it is first asked for, and once."""

    make: Callable[[], Any]

    @cached_property
    def value(self) -> Any:
        """What was made."""
        return self.make()


class Remote(Interface):
    """Runs methods in processes of their own. None is the answer for one that it does not run."""

    def attribute(
        self, method: Method, pair: Pair, seed: int
    ) -> tuple[NDArray[np.float32], dict[str, Any]] | None:
        """The checked maps of all images, and facts about them."""

    def attribute_batch(
        self, method: Method, pair: Pair, part: slice, seed: int, images: Tensor | None
    ) -> NDArray[np.float32] | None:
        """The checked maps of some images, or of others in their place."""

    def not_applicable(self, method: Method, pair: Pair) -> tuple[str | None] | None:
        """Why the method cannot be right on the pair's model, or None; in a tuple of one."""


class Evaluation(Interface):
    """One case at work, as a check sees it."""

    @property
    def protocol(self) -> Protocol: ...  # noqa: D102
    @property
    def pair(self) -> Pair: ...  # noqa: D102

    @property
    def images(self) -> int:
        """How many images the protocol scores."""

    def rows(self) -> dict[str, Rows]:
        """The rows of every method that is applicable and does not fail."""

    @property
    def left_out(self) -> Mapping[str, str]:
        """Why every other method has no rows."""


class Lab(Interface):
    """The run that a check is part of: what it may look at, and what it may compute anew."""

    @property
    def settings(self) -> Settings: ...  # noqa: D102
    @property
    def cases(self) -> tuple[Case, ...]: ...  # noqa: D102

    def progress(self, text: str) -> None:
        """Say what is being done."""

    def evaluation(self, case: Case) -> Evaluation:
        """The case as the run evaluates it."""

    def few(
        self,
        case: Case,
        protocol: Protocol | None = None,
        seed: int | None = None,
        alter: Callable[[Pair], Pair] | None = None,
    ) -> Evaluation:
        """The case on its first few images, with another protocol, seed or an altered pair."""

    def pair(
        self, dataset: str, model: str, images: int | None, tuning: Tuning | None = None
    ) -> Pair:
        """A dataset x model with its first images, or all; fine-tuned if that is asked for."""

    def pair_of(self, network: nn.Module, data: Dataset) -> Pair:
        """A pair of a network that is not registered."""

    def training(self, pair: Pair, count: int) -> Pair:
        """The pair with the first images of the training split in place of the held-out ones."""

    def trainer(self, pair: Pair) -> Callable[[Tensor, int], nn.Module]:
        """Trains the pair's architecture anew: on images in place of its own, for some epochs."""

    def maps(self, pair: Pair, method: str) -> NDArray[np.float32]:
        """The maps of a registered method, from the store if they are there."""

    def keep(
        self,
        name: str,
        pair: Pair,
        compute: Callable[[], dict[str, NDArray[np.generic]]],
        code: Callable[..., Any],
        other: Pair | None = None,
    ) -> dict[str, NDArray[np.generic]]:
        """Arrays that a check computes for a pair, from the store if `code` has not changed.

        other: a second pair that they depend on.
        """

    def verdict(self, check: Check, protocol: str) -> Verdict:
        """The verdict of a check on a protocol, from the store if it can be."""

    def resamples(self, pair: Pair) -> NDArray[np.int64]:
        """How often each image is drawn in each bootstrap sample, [samples, images]."""


@dataclass(frozen=True)
class Verdict:
    """What a check found: passed or not, its figures, and why it failed.

    Figures are numbers, or lists of them for curves. `passed` is None where there was not enough to
    decide; `reason` then says what was missing.
    """

    passed: bool | None
    figures: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True)
class Check:
    """A registered check. What it ranges over says what `run` is called with:

    methods: (method, pair), on a dataset x model to which the method applies
    cases: (lab, case)
    protocols: (lab, protocol), the name of it; models: (lab, dataset, model)
    suite: (lab); once

    fits: whether a protocol is one to ask. default: whether it runs unasked in any profile but
    full. sampled: in any profile but full, one embedded model per dataset stands for all of them.
    known_failures: protocols for which it is known to fail, in some case at least, or other
    subjects, and why. A failure that is not known turns the item red. depends: as of a Method.
    """

    name: str
    run: Callable[..., Verdict]
    over: Over = "methods"
    fits: Callable[[Protocol], bool] = lambda protocol: True
    default: bool = True
    sampled: bool = False
    known_failures: Mapping[str, str] = field(default_factory=dict)
    depends: Sequence[str] = ()
