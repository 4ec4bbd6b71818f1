"""Groups of accounts in Spark: a DataFrame of edges in, a DataFrame of members out.

    pip install edgemill pyspark        # and Java 17
    python from_spark.py EDGES.csv FOLDER

The CSV file has the columns src and dst. FOLDER must be reached by Spark's executors and by edgemill.
"""

import subprocess
import sys

from pyspark.sql import SparkSession

edges_file, folder = sys.argv[1:]
spark = SparkSession.builder.appName("groups").getOrCreate()

edges = spark.read.csv(edges_file, header=True, inferSchema=True)
edges.select("src", "dst").dropna().write.parquet(f"{folder}/edges")

subprocess.run(["edgemill", "run", "--input", f"{folder}/edges", "--output", f"{folder}/groups"], check=True)

groups = spark.read.parquet(f"{folder}/groups/dn_graphs")
members = spark.read.parquet(f"{folder}/groups/dn_graph_members")
found = members.join(groups, members.dn_graph == groups.id).select("dn_graph", "vertex", "lambda", "density")
found.write.csv(f"{folder}/members", header=True)
found.orderBy("lambda", "vertex", ascending=[False, True]).show(5)
spark.stop()
