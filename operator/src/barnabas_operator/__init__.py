"""The operator of Barnabas: custom resources in, a running cluster out."""
