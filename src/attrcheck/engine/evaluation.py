"""Evaluate one case: what was observed shard by shard, joined, reduced to scores."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from attrcheck.contracts import Case, Method, Protocol, Reduction, Rows, Settings
from attrcheck.engine import keys
from attrcheck.engine.finding import find
from attrcheck.engine.loading import Loader, Trained
from attrcheck.engine.pacing import Steps
from attrcheck.engine.pairs import Pair, arranged
from attrcheck.engine.plausibility import caveats, warn_of_few
from attrcheck.engine.resampling import interval, replicates
from attrcheck.engine.results import CaseResult, Curve, Outcome, Provenance, join
from attrcheck.engine.shards import Shard, joined_entry
from attrcheck.errors import MethodError, cut
from attrcheck.protocols import protocol as protocols
from attrcheck.store.digests import digest
from attrcheck.store.encoding import Entry, Key, fingerprint
from attrcheck.store.entries import Store, VerificationError
from attrcheck.store.locking import BusyError

Progress = Callable[[str], None]
MOST_IMAGE_SCORES = 256
"""Scores of single images that a report gets of each method and case."""
PLAIN = (bool, int, float, type(None))


@dataclass(frozen=True)
class Evaluation:
    """One case at work: what its methods share, and how each is scored.

    instead: another protocol in place of the case's own. alter: what is done to the pair first.
    ended: methods that are not tried, as it is known already what becomes of them.
    """

    case: Case
    settings: Settings
    store: Store
    loader: Loader
    instead: Protocol | None = None
    alter: Callable[[Pair], Pair] | None = None
    ended: Mapping[str, Outcome] = field(default_factory=dict)

    @cached_property
    def protocol(self) -> Protocol:
        """The protocol of this case."""
        return self.instead or protocols.get(self.case.protocol).make(self.settings.profile)

    @property
    def pair(self) -> Pair:
        """The loaded pair; loaded again after a method has spoilt it."""
        return self._pair(None, self.protocol)

    def _pair(self, shard: int | None, protocol: Protocol) -> Pair:
        pair = arranged(protocol, self._plain(shard))
        return self.alter(pair) if self.alter else pair

    def _seen(self, shard: int | None) -> Pair:
        """As it is when nothing is arranged."""
        protocol = self.protocol
        return self._plain(shard) if protocol.arranges else self._pair(shard, protocol)

    def _plain(self, shard: int | None) -> Pair:
        """With the images of the dataset, whatever the protocol makes of them."""
        case, tuning = self.case, self.protocol.tuning
        return self.loader.pair(case.dataset, case.model, self._attributed, tuning, shard)

    @property
    def _attributed(self) -> int | None:
        """How many images have maps; None: all."""
        # A model or images of its own have maps of their own: none that do not count are made.
        images, protocol = self.settings.images, self.protocol
        return self._most(images) if protocol.tuning or protocol.arranges else images

    @cached_property
    def images(self) -> int:
        """How many images the protocol scores."""
        total = self.loader.count(self.case.dataset, self._attributed)
        return min(total, self._most(total) or total)

    def _most(self, images: int | None) -> int | None:
        most = self.protocol.most_images
        if most is None or self.settings.images_given:
            return images
        return most if images is None else min(images, most)

    @cached_property
    def shards(self) -> list[Shard]:
        """The images that are scored, shard by shard; a protocol that trains gets them at once."""
        if self.protocol.training_images:
            sizes: list[tuple[int | None, int]] = [(None, self.images)]
        else:
            size = self.loader.shard
            sizes = [
                (start // size, min(size, self.images - start))
                for start in range(0, self.images, size)
            ]
        return [
            Shard(
                case=self.case,
                protocol=self.protocol,
                settings=self.settings,
                store=self.store,
                load=partial(self._pair, number),
                plain=partial(self._seen, number),
                number=number or 0,
                images=size,
            )
            for number, size in sizes
        ]

    @property
    def trained(self) -> Trained:
        """The model of this case, and the dataset as it sees it."""
        return self.loader.trained(self.case.dataset, self.case.model, self.protocol.tuning)

    @property
    def correct(self) -> NDArray[np.generic]:
        """Which of the scored images the model gets right."""
        return np.concatenate([shard.intact["correct"] for shard in self.shards])[: self.images]

    def caveats(self, correct: NDArray[np.generic]) -> list[str]:
        """What is to be said of the images and the model, which must be better than chance."""
        data = self.trained.data
        labels = data.labels[: self.images].numpy()
        return caveats(correct, labels, data.classes, self.settings.accept_accuracy)

    def maps(self, method: Method) -> NDArray[np.generic]:
        """The method's maps of the images that are scored."""
        return np.concatenate([shard.maps(method).arrays["maps"] for shard in self.shards])[
            : self.images
        ]

    def observe_all(self, progress: Progress = lambda text: None) -> dict[str, Entry | Outcome]:
        """What was observed of every method; one that fails fails alone, and the others go on."""
        names = self.settings.methods
        ends = dict(self.ended)
        entries: dict[str, list[Entry]] = {name: [] for name in names}
        for name, observed in self.observe(self.shards, progress):
            if isinstance(observed, Outcome):
                ends[name] = observed
            else:
                entries[name].append(observed)
        sizes = [shard.images for shard in self.shards]
        return {name: ends.get(name) or joined_entry(entries[name], sizes) for name in names}

    def observe(
        self, shards: Sequence[Shard], progress: Progress
    ) -> Iterator[tuple[str, Entry | Outcome]]:
        """What was observed of methods, shard by shard; one that ends is not tried again."""
        left = [name for name in self.settings.methods if name not in self.ended]
        steps = Steps(self.case.id, len(left), len(shards), progress)
        for place, shard in enumerate(shards):
            steps.skip(place, len(left))
            begin = partial(steps.begin, shard=place)
            for name, observed in self._observe(shard, list(left), begin):
                steps.end(shard.images)
                if isinstance(observed, Outcome):
                    left.remove(name)
                yield name, observed

    @cached_property
    def key(self) -> Key:
        """All that decides what is observed of the case, but for the code of its reduction."""
        methods = {name: find(name) for name in self.settings.methods}
        return {
            "rows": digest({name: self._fingerprint(name) for name in methods}),
            "applies": digest({name: keys.of_applying(one) for name, one in methods.items()}),
            "protocol": digest(keys.of_protocol(self.protocol)),
        }

    @property
    def whole(self) -> Key:
        """The key of the model with all images that have maps, whatever the shards."""
        case, tuning = self.case, self.protocol.tuning
        return self.loader.key(case.dataset, case.model, self._attributed, tuning)

    def _fingerprint(self, name: str) -> str:
        """The hash of all that decides a method's rows, whatever the shards."""
        return fingerprint(self.shards[0].key(find(name), self.whole, self.images))

    def _observe(
        self, shard: Shard, names: list[str], begin: Progress
    ) -> Iterator[tuple[str, Entry | Outcome]]:
        """What was observed of methods on one shard.

        What another process is computing comes last: by then there is little to wait for.
        """
        busy: list[str] = []
        for wait, chosen in ((False, names), (True, busy)):
            for name in chosen:
                begin(name)
                try:
                    yield name, shard.observe(find(name), wait)
                except BusyError:
                    busy.append(name)
                except (MethodError, VerificationError) as error:
                    self.loader.forget(shard.plain())
                    yield name, Outcome("error", str(error))

    def rows(self) -> dict[str, Rows]:
        """The rows of every method that is applicable and does not fail; the item tells who is."""
        return copy.deepcopy(self._rows)

    @cached_property
    def left_out(self) -> dict[str, str]:
        """Why every other method has no rows."""
        observed = self._observed.items()
        return {name: end.reason for name, end in observed if isinstance(end, Outcome)}

    @cached_property
    def _rows(self) -> dict[str, Rows]:
        observed = self._observed.items()
        return {name: entry.arrays for name, entry in observed if isinstance(entry, Entry)}

    @cached_property
    def _observed(self) -> dict[str, Entry | Outcome]:
        return self.observe_all()

    def settled(self, observed: dict[str, Entry | Outcome]) -> Protocol:
        """The protocol, after it has seen what all methods did."""
        rows = [entry.arrays for entry in observed.values() if isinstance(entry, Entry)]
        return self.protocol.settle(rows)

    def score(self, protocol: Protocol, observed: dict[str, Entry | Outcome]) -> dict[str, Outcome]:
        """Every method's outcome."""
        rows = {name: one.arrays for name, one in observed.items() if isinstance(one, Entry)}
        reductions = {name: protocol.reduce(some) for name, some in rows.items()}
        scored = {name: rows[name] for name, one in reductions.items() if np.isfinite(one.score)}
        seed, pair = self.settings.seed, self.case.pair
        resampled = replicates(protocol, scored, reductions, self.images, seed, pair)
        return {
            name: entry
            if isinstance(entry, Outcome)
            else outcome_of(entry, reductions[name], resampled.get(name), self._fingerprint(name))
            for name, entry in observed.items()
        }


def outcome_of(
    entry: Entry,
    reduction: Reduction,
    scores: NDArray[np.float64] | None,
    fingerprint: str = "",
) -> Outcome:
    """What became of a method; without replicates its score is not defined."""
    facts: dict[str, Any] = {
        "seconds": entry.info["seconds"] / entry.info["images"],
        "constant_maps": entry.info["constant"],
        "undefined_images": reduction.undefined,
        "passes": entry.info["passes"],
        "fingerprint": fingerprint,
    }
    if scores is None:
        reason = "the protocol defines no score for these maps"
        return Outcome("undefined", reason, **facts)
    low, high = interval(scores)
    return Outcome(
        "ok",
        score=float(reduction.score),
        low=low,
        high=high,
        curve=Curve.of(reduction.curve),
        replicates=scores,
        image_scores=_single(_some(reduction.per_image)),
        curve_errors=_single(reduction.errors),
        **facts,
    )


def _some(per_image: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    """The first scores of images: every prefix of a dataset is a fair sample."""
    return None if per_image is None else per_image[:MOST_IMAGE_SCORES]


def _single(values: NDArray[np.float64] | None) -> NDArray[np.float32]:
    """Values that are only looked at, in half the room."""
    return np.asarray([] if values is None else values, dtype=np.float32)


def run_case(
    evaluation: Evaluation, progress: Progress, tell: Progress = lambda text: None
) -> CaseResult:
    """Score every method of a case; before anything is attributed, `tell` the accuracy."""
    torch.set_num_threads(evaluation.settings.threads)
    evaluation.store.open()
    correct = evaluation.correct
    accuracy = float(correct.mean())
    announce(evaluation, accuracy, tell)
    remarks = evaluation.caveats(correct)
    observed = evaluation.observe_all(progress)
    protocol = evaluation.settled(observed)
    planned, settings = _settings(evaluation.protocol), _settings(protocol)
    trained = evaluation.trained
    return CaseResult(
        case=evaluation.case.id,
        higher_is_better=protocol.higher_is_better,
        images=evaluation.images,
        accuracy=accuracy,
        outcomes=evaluation.score(protocol, observed),
        protocol_settings=settings,
        tuning=dict(evaluation.shards[0].plain().tuned),
        problems=evaluation.store.take_problems(),
        settled=[name for name, value in settings.items() if planned.get(name) != value],
        data=keys.of_dataset(trained.data.head(evaluation.images)),
        weights=keys.of_weights(trained.forms.built),
        caveats=remarks,
        provenance=join(
            Provenance(origin.stored, origin.versions, {evaluation.case.id: {name: origin.created}})
            for name, entry in observed.items()
            if isinstance(entry, Entry) and (origin := entry.origin) is not None
        ),
    )


def announce(evaluation: Evaluation, accuracy: float, tell: Progress) -> None:
    """Tell the accuracy; warn if there are fewer images than the protocol needs."""
    warn_of_few(evaluation.protocol, evaluation.case.protocol, evaluation.images)
    tell(f"{evaluation.case.pair}: accuracy {accuracy:.1%} of {evaluation.images} images")


def _settings(protocol: Protocol) -> dict[str, Any]:
    """The protocol's settings, as JSON can hold them."""
    fields: dict[str, Any] = asdict(protocol) if is_dataclass(protocol) else {}
    return {
        name: value if isinstance(value, PLAIN) else cut(str(value))
        for name, value in sorted(fields.items())
    }
