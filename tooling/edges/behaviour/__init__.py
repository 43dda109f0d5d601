"""Runs a release's real tuner in a throw-away environment: uv makes it, a worker script observes."""
