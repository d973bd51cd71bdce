"""`python -m barnabas_pipelines`: the command with the defaults of a pod."""

import math

from barnabas_pipelines.command import pipeline_group

# A pod that ended because a user or a topic is not there yet would only be started again.
pod = pipeline_group(data="/data", status="0.0.0.0:8080", wait_s=math.inf)
pod(prog_name="barnabas_pipelines")
