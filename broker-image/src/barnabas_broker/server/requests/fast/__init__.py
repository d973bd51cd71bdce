"""Fast routes: common requests served without message objects, by the checks of their handlers.

A fast route (`Handler.fast`) reads a frame into values, has a function decide on them that the
handler calls too, and writes the response. What is authorised, checked, refused and counted is said
in one place for both. A request that a fast route does not serve goes to the handler as if there
none; `barnabas.fast.path.enable=false` sends every request there.
"""
