"""Kafka's command-line tools under the names and with the options people type.

Every module is one tool: `main` is its entry point, with and without `.sh`. They use the same
functions as the verbs of `barnabas`, and print what Apache's tools of 3.9 print where scripts read
it. Exit codes are Kafka's: 0 done, 1 anything else, wrong usage included.
"""
