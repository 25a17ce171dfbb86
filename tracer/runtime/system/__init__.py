"""Process-wide services: locks, fork safety, floating-point warnings, devices."""
