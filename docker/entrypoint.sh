#!/bin/sh
# `docker run IMAGE run --input …` is edgemill's command; `docker run IMAGE dask worker …` is Dask's, which its Helm chart
# calls dask-worker.
case "${1-}" in
dask | python) exec "$@" ;;
dask-scheduler) shift && exec dask scheduler "$@" ;;
dask-worker) shift && exec dask worker "$@" ;;
dask-cuda-worker) shift && exec dask cuda worker "$@" ;;
*) exec edgemill "$@" ;;
esac
