"""Pure builders: from a custom resource to the Kubernetes objects that make it true, as dicts."""
