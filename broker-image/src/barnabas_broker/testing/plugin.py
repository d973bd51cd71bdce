"""The pytest plugin: fixtures that give a test a real broker.

It is loaded in every pytest run of every project that has Barnabas installed, so it imports nothing
heavier than pytest itself until a fixture is asked for.
"""
