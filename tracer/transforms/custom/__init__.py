"""Functions with rules of the user's own: custom_jvp, custom_vjp, custom_vmap, and closure conversion."""
