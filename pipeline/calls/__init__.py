"""What a call of `mine` from Python may be given, and what becomes of it: input, output, settings and a client."""
