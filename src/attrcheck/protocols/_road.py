"""What both orders of ROAD have in common."""

from __future__ import annotations

AT = (0, 1, 2, 3, 4, 5, 7, 9)
"""Tenths of the pixels: the published fractions, and the intact image, from which areas start."""

IMAGES = {"default": 40}
"""Images a case by profile; all where none is given."""
