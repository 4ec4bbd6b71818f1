"""Groups of customers in SQL: DuckDB writes the edges, edgemill finds the groups, DuckDB reads them.

    pip install edgemill duckdb
    python from_sql.py PURCHASES.csv FOLDER

The CSV file has the columns customer and product. Two customers are joined if they bought at least two of the same
products.
"""

import subprocess
import sys

import duckdb

purchases, folder = sys.argv[1:]
base = duckdb.connect()

base.execute(
    f"""
    COPY (
      SELECT a.customer AS src, b.customer AS dst
      FROM '{purchases}' a JOIN '{purchases}' b ON a.product = b.product AND a.customer < b.customer
      GROUP BY ALL
      HAVING count(DISTINCT a.product) >= 2
    ) TO '{folder}/pairs.parquet' (FORMAT parquet)
    """
)

subprocess.run(["edgemill", "run", "--input", f"{folder}/pairs.parquet", "--output", f"{folder}/groups"], check=True)

base.sql(
    f"""
    SELECT g.id, g."lambda", count(*) AS customers, string_agg(m.vertex, ', ' ORDER BY m.vertex) AS who
    FROM '{folder}/groups/dn_graphs/*.parquet' g
    JOIN '{folder}/groups/dn_graph_members/*.parquet' m ON m.dn_graph = g.id
    GROUP BY ALL
    ORDER BY g."lambda" DESC, g.id
    """
).show()
