"""The papers' falsification experiments, in small: does what they found hold here?"""

from attrcheck.plugin.items import CheckItem


def test_experiment(attr_experiment: CheckItem) -> None:
    """Repeat one experiment; an effect that is not found again is declared, with its figure."""
    attr_experiment.run()
