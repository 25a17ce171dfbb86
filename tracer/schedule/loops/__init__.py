"""Loop passes for every machine: row fusion, storage folding, splitting of reductions."""
