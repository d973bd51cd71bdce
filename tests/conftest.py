"""What holds for every test: how hard the property tests look."""

from hypothesis import settings

# `make soak` asks for this one; everyday runs keep Hypothesis's own number of examples.
settings.register_profile("soak", max_examples=5000, deadline=None)
