"""The custom resources as typed Python, the one source of CRDs, parser and documentation.

`clusters`, `topics`, `users` and `pipelines` declare one resource each; `facts` has the words they
declare with; `reading` makes such an object of a resource as the API server gives it, `schemas`
makes the structural schema, `definitions` the CustomResourceDefinitions.
"""

from __future__ import annotations

from typing import Final

GROUP: Final = "barnabas.io"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
