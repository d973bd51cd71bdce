"""The fixed-width integer type that mypyc compiles to a machine word.

To the type checker, and so to mypyc, it is `mypy_extensions.i64`. When the program runs it is plain
`int`, so that running from source needs no package for it. The choice cannot be in a compiled
module itself: mypyc takes the branch for the type checker to be the only one.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_extensions import i64
else:
    i64 = int

__all__ = ["i64"]
