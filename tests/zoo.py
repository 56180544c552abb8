"""A zoo of hostile methods: what each does to others, and what must become of it.

`HERE` are those that a process survives; `ELSEWHERE` those that need a process of their own.
"""

from dataclasses import dataclass, field

HARMLESS = ""
KEPT = []
"""What must not be collected while the zoo is open."""


@dataclass(frozen=True)
class Hostile:
    """A method, and a pattern of its error; none if it is harmless to others and may compete."""

    attribute: object
    error: str = HARMLESS
    name: str = "mischief"
    settings: dict = field(default_factory=dict)


HERE: dict[str, Hostile] = {}
ELSEWHERE: dict[str, Hostile] = {}


def maps(images):
    """Maps that keep the contract."""
    return images.abs().sum(1)


def does(title, error=HARMLESS, zoo=HERE, **settings):
    """A method that does something, and then returns maps."""

    def register(function):
        def attribute(model, images, targets, dataset, seeds):
            answer = function(model=model, images=images, dataset=dataset, seeds=seeds)
            return maps(images) if answer is None else answer

        zoo[title] = Hostile(attribute, error, settings=settings)
        return function

    return register


def returns(title, error, answer):
    """A method that returns something odd."""
    HERE[title] = Hostile(lambda model, images, targets: answer(maps(images)), error)


def raises(title, error, exception):
    """A method that raises something odd."""

    def attribute(model, images, targets):
        raise exception()

    HERE[title] = Hostile(attribute, error)


def holds(title, thing):
    """A method that holds something odd, and is otherwise as it should be."""

    class Callable:
        def __init__(self):
            self.thing = thing

        def __call__(self, model, images, targets):
            return maps(images)

    HERE[f"holds {title}"] = Hostile(Callable())


def elsewhere(title, error=HARMLESS, **settings):
    """A method that nobody would want in the same process."""
    return does(title, error, ELSEWHERE, **settings)
