"""Runs the test suites that this machine can run and reports them in one table: `make test`.

`suites` is the table of suites, `plan` chooses from it, `results` and `report` are about what
came out. These are pure; `requirements`, `processes`, `preparations` and `runner` do the work.
"""
