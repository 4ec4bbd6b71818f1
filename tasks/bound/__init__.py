"""One partition's share of finding λ: peeling alone, or a step of banding or of fixpoint rounds between exchanges."""
