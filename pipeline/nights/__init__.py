"""What becomes of DN-graphs from one result to the next: which is the same, which merged or split, and the track that
each keeps over the nights of a series.
"""
