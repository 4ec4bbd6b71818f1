"""A finished run in short: the end of `edgemill run`, `edgemill show`, and JSON documents of results and plans.

Start at `show` and `run_end` for text, at `result_document` and `plan_document` for JSON.
"""
