"""Examples of tracer beside PyTorch: each file has the `PAIRS` of one example of `tracer/examples`, by its name.

`PAIRS` maps labels of rows to functions that make a `pair.Pair`.
"""
