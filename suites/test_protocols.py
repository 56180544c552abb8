"""Every check of every protocol: can its cases be trusted?"""

from attrcheck.plugin.items import CheckItem


def test_protocol(attr_protocol_check: CheckItem) -> None:
    """Put one case, protocol or model to one check."""
    attr_protocol_check.run()
