"""The `jit` decorator: signatures, tracing, specialisations, explanations, stages."""
