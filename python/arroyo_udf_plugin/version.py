"""The toolkit's version, the same as in pyproject.toml. Imports nothing, so that every room may use it."""

__version__ = "0.1.0"
