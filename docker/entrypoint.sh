#!/bin/sh
# `docker run IMAGE run --input …` is edgemill's command; `docker run IMAGE dask worker …` is Dask's.
case "${1-}" in
dask | python) exec "$@" ;;
*) exec edgemill "$@" ;;
esac
