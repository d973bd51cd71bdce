"""Reconciling: observe, plan, apply, report; again and again. Only this package uses the ports."""
