"""Control flow: calls, cond, while_loop, scan, for_loop, effects, collectives; and what is differentiated by scans."""
