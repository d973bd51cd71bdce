"""Record formats: batches, codecs, old message sets, control records, the walk."""
