"""Command-line tools.

`barnabas broker start` is the broker; every other command is a client of one, speaks Kafka's
protocol through librdkafka, and works on an Apache broker just as well.

Exit codes: 0 the operation succeeded; 1 it failed, with one line on stderr that says why; 2 the
command line or a setting was wrong, and nothing was tried.

Starting a broker must stay fast and small, so nothing here imports a client library, a table
renderer or the server before the command that needs it runs.
"""
