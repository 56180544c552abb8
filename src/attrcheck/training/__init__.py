"""One training loop, fine-tuning, and weights on disk."""

from pathlib import Path

WEIGHTS = Path(__file__).parent.parent / "weights"
"""The weights that ship with the package."""
