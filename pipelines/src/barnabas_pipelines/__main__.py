"""`python -m barnabas_pipelines`: the command with the defaults of a pod."""

from barnabas_pipelines.command import pipeline_group

pod = pipeline_group(data="/data", status="0.0.0.0:8080", wait_s=300)
pod(prog_name="barnabas_pipelines")
