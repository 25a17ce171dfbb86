"""Loop passes for a CPU: vectorisation, threads, streaming stores, tiling."""
