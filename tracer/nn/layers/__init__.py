"""Layers: modules with parameters, normalisation, pooling, and layers that draw or change shapes."""
