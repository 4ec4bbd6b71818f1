#!/usr/bin/env bash
# Installs Airflow and Prefect from PyPI below DIR, each in a virtual environment of its own: they ask for other releases of
# FastAPI. Prints AIRFLOW and PREFECT, their interpreters.
set -euo pipefail

folder=$(realpath "${1:?usage: up.sh DIR}")

# install NAME PACKAGES: a virtual environment NAME with the packages
install() {
  name=$1
  shift
  python3 -m venv "$folder/$name" || { echo "no virtual environments here: apt-get install python3-venv" >&2; exit 77; }
  "$folder/$name/bin/pip" install --quiet "$@" > "$folder/$name.log" 2>&1 ||
    { echo "pip cannot install $*: $(grep -m 1 '^ERROR:' "$folder/$name.log")" >&2; exit 77; }
}
install airflow 'apache-airflow>=3,<4'
install prefect 'prefect>=3,<4' 'fastapi<0.155' # see docs/nightly.md
AIRFLOW_HOME=$folder/home AIRFLOW__CORE__LOAD_EXAMPLES=False "$folder/airflow/bin/airflow" db migrate > "$folder/db.log" 2>&1 ||
  { echo "Airflow cannot make its database:" >&2; tail -n 20 "$folder/db.log" >&2; exit 1; }
cat << VALUES
AIRFLOW=$folder/airflow/bin/python
AIRFLOW_HOME=$folder/home
PREFECT=$folder/prefect/bin/python
PREFECT_HOME=$folder/prefect-home
VALUES
