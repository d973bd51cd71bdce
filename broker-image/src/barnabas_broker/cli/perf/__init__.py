"""Measuring a cluster as its clients see it: producing, consuming, and the way of one record.

`measures` is arithmetic, `producing`, `consuming` and `latency` do the work over librdkafka,
`command` are the verbs of `barnabas perf`. Kafka's perf-test tools use the same modules.
"""
