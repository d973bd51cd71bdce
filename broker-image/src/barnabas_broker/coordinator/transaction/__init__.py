"""The transaction coordinator: producers, their transactions, and how each ends."""
