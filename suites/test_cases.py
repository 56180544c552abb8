"""Every case of the matrix: dataset x model x protocol, ranking all methods."""

from attrcheck.plugin.items import CaseItem


def test_case(attr_case: CaseItem) -> None:
    """Rank all methods; red if one fails, breaks its contract or cannot be recorded."""
    attr_case.run()
