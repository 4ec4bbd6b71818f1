#!/bin/sh
# Whether the container is well: HEALTH_URL answers, a scheduler's /health or a worker's /ready; where it is not set, as
# for a job, whether the command starts.
if [ -z "${HEALTH_URL-}" ]; then
    exec edgemill --version
fi
exec python -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=5)' "$HEALTH_URL"
