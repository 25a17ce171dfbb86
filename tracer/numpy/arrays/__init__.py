"""Array's methods and protocols: indexing, operators, `at`, ufuncs, NumPy compatibility, files."""
