"""The simulator itself: it is repeatable, and finds what it is there to find."""
