"""The custom resources on one machine without Kubernetes: `barnabas local up|status|down`.

`documents` reads a file, `state` keeps what is remembered between commands, `processes` starts and
stops; `broker`, `topics` and `pipelines` bring one kind of resource to what it should be; `up`,
`status` and `down` are the verbs, `command` their command line.
"""
