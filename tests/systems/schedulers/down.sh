#!/usr/bin/env bash
# Nothing runs that up.sh started.
set -euo pipefail
