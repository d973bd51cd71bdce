"""The scenarios' own parts, without Kubernetes."""
