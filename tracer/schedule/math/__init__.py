"""Math functions as straight-line scalar operations, shared by every backend."""

from tracer.schedule.math.legalise import expand_math

__all__ = ["expand_math"]
