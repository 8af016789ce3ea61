from __future__ import annotations

from hypothesis import settings

# Hypothesis' own profile for CI: the same examples in every run, and no deadline for any of them,
# since a busy machine is no failure. Others are chosen by `--hypothesis-profile=default`.
settings.load_profile("ci")
