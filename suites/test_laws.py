"""Every law of every protocol, removal and method, and of the fusion, tried by hypothesis."""

from attrcheck.plugin.lawful import LawItem


def test_law(attr_law: LawItem) -> None:
    """Look for a scene that breaks one law; red with the simplest one."""
    attr_law.run()
