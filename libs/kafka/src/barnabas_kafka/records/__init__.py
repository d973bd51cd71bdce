"""Record batches as stored and sent: formats 0, 1 and 2."""
