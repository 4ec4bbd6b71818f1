"""A finished run in short: to a person at its end and by `edgemill show`, and as JSON to programs."""
