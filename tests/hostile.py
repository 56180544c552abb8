"""All hostile methods, by what they do: those that a process survives, and the others."""

from tests import hostile_answers, hostile_meddlers, hostile_processes
from tests.zoo import ELSEWHERE, HERE

__all__ = ["ELSEWHERE", "HERE", "hostile_answers", "hostile_meddlers", "hostile_processes"]
