"""Which distribution and version a package is of, told without reading what all others hold."""

from importlib import metadata

from attrcheck.store import places
from attrcheck.store.places import version


def fresh(monkeypatch):
    """Nothing is remembered, and the slow way is counted."""
    version.cache_clear()
    asked = []

    def distributions():
        asked.append(1)
        return metadata.packages_distributions()

    monkeypatch.setattr(places, "_distributions", distributions)
    return asked


def test_a_package_of_a_distribution_of_its_name_is_found_at_once(monkeypatch):
    asked = fresh(monkeypatch)
    assert version("torch") == f"torch {metadata.version('torch')}"
    assert version("json") == "json"  # Python's own
    assert not asked


def test_other_packages_are_looked_for_in_all_distributions(monkeypatch):
    asked = fresh(monkeypatch)
    assert version("PIL") == f"pillow {metadata.version('pillow')}"
    assert version("nowhere_to_be_found") == "nowhere_to_be_found"
    assert asked


def test_a_namesake_that_does_not_hold_the_package_does_not_count(monkeypatch, tmp_path):
    fresh(monkeypatch)
    about = tmp_path / "PIL-1.0.dist-info" / "METADATA"
    about.parent.mkdir()
    about.write_text("Metadata-Version: 2.1\nName: PIL\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert metadata.version("PIL") == "1.0"
    assert version("PIL") == f"pillow {metadata.version('pillow')}"


def test_quick_and_slow_ways_agree_on_all_that_is_installed():
    for package, names in metadata.packages_distributions().items():
        assert version(package) in [f"{name} {metadata.version(name)}" for name in names]
