"""One element of a result on demand: how fused producers are evaluated in place."""
