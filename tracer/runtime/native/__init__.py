"""The native entry of compiled programs: argument checks, results, Ctrl-C, object caches."""
