"""Programs of libraries written for JAX, and the script that runs them with JAX and with tracer in its place."""
