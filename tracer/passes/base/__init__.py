"""Tools of every pass: the record of a pass, rewriting by rules, loops by roles, liveness of inputs."""
