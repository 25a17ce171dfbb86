"""Profiles: where the time of calls, compilations, transfers and loop nests goes."""
