"""The project's version."""

VERSION = "0.3.0"
