"""Files that hold edges: which formats there are, how they are found, how they are laid out, and how they are read."""
