"""Control flow: calls, cond, while_loop, scan, for_loop, effects, collectives; operations differentiated by scans."""
