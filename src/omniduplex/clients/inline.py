"""The name of `omniduplex.clients.inline_duplex` that is asked for here."""

from omniduplex.clients.inline_duplex import InlineDuplexClient

__all__ = ["InlineDuplexClient"]
