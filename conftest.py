"""Hypothesis profiles of this repository's own tests; no plugin logic."""

import os

try:
    from hypothesis import settings
except ImportError:  # `pytest suites/` works without the dev extra
    pass
else:
    settings.register_profile("dev", max_examples=50, deadline=None)
    settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True)
    on_ci = os.environ.get("CI", "").lower() == "true"
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if on_ci else "dev"))
