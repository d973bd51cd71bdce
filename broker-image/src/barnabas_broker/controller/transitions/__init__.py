"""What the active controller does upon each event, as transitions of its context.

A transition reads the context, yields commands (`controller.commands`), changes the context by
their results, and returns the answer. It does no I/O and reads no clock. `controller.core` has the
table.
"""
