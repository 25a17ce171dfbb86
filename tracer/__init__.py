"""tracer: a functional array compiler."""
