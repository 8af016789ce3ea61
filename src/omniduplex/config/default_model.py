"""The model of whoever names none; here because reading it must import nothing."""

DEFAULT_MODEL = "omniduplex/local"
