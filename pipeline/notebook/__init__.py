"""What a notebook shows: a result, a record of its manifest, and how far a run is. It is HTML without scripts."""
