"""Notebooks: attribute, score, rank, fuse and show in Python, by the engine's own code."""
