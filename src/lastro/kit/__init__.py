"""Values without I/O: money, ids, time, documents, codes, errors. Imports nothing else of Lastro."""
