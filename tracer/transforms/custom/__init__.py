"""Rules by users: custom_jvp, custom_vjp, custom_vmap, closure conversion, symbolic zeros."""
