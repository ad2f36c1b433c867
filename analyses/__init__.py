"""Entry scripts: each a thin Hydra application."""
