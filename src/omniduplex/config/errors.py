"""What a deployment can get wrong before it serves."""

from __future__ import annotations


class ConfigError(Exception):
    """The deployment is not valid; the message names the file and the key."""
