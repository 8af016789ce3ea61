"""The names of `omniduplex.clients.duplex`."""

from omniduplex.clients.duplex import *  # noqa: F403
