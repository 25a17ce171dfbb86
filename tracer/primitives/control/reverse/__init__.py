"""Reverse mode through loops: residual stacks, checkpoints, rematerialisation."""
