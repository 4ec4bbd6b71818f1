"""Programs of a run: what they are called, their settings and columns, and how they run on the cluster."""
