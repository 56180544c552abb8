"""Find methods by name, without torch unless a method brings it."""

from __future__ import annotations

from attrcheck.contracts import Method
from attrcheck.errors import MethodError, text_of
from attrcheck.methods import method as methods


def find(name: str) -> Method:
    """The method; one that cannot be imported fails alone like any other."""
    try:
        return methods.get(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise MethodError(f"method {name!r} cannot be loaded: {text_of(error)}") from error


def base_of(method: Method) -> Method | None:
    """The method whose maps this one takes the absolute values of, if there is one."""
    return find(method.absolute_of) if method.absolute_of else None
