"""Loop IR to CUDA C++."""
