"""Every check of every method, a user's own included."""

from attrcheck.plugin.items import CheckItem


def test_method(attr_check: CheckItem) -> None:
    """Put one method to one check."""
    attr_check.run()
