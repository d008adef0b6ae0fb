"""Plugins: their manifests, how they are found, chosen and configured, and the import paths that they fill."""
