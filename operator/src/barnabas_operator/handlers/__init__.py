"""The operator as a process: kopf watches, a work queue is worked off, passes run in threads.

kopf is used for its watching alone. Its timers, daemons and change handlers would put finalizers
and annotations on resources; event handlers put nothing, so a namespace can be deleted when the
operator is gone.
"""
