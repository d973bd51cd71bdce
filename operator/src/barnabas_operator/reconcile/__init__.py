"""Reconciling: look, plan, act, tell; again and again. The ports are used here and only here."""
