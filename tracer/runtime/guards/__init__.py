"""Guards of compiled functions: the free variables that tracing read."""
