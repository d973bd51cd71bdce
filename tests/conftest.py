"""What holds for every test: how hard the property tests look, and for how long."""

from hypothesis import HealthCheck, settings

# No example is too slow: the machine may be busy. Hypothesis has a profile of its own for CI, which
# draws the same examples every time.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# `make soak` asks for this one.
settings.register_profile("soak", settings.get_profile("patient"), max_examples=5000)

if settings.get_current_profile_name() != "ci":
    settings.load_profile("patient")
