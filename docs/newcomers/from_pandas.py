"""Groups of accounts in pandas: a frame of payments in, a frame of features out.

    pip install edgemill pandas
    python from_pandas.py PAYMENTS.csv FEATURES.csv

The CSV file has the columns payer and payee.
"""

import sys

import pandas as pd

import edgemill

payments = pd.read_csv(sys.argv[1])
result = edgemill.mine(payments, source_column="payer", target_column="payee")

accounts = result.vertices.to_pandas()
groups = result.dn_graphs.to_pandas().rename(columns={"vertices": "group_size", "density": "group_density"})
members = result.dn_graph_members.to_pandas().rename(columns={"dn_graph": "group"})

features = (
    accounts[["id", "degree", "triangles", "lambda"]]
    .merge(members, how="left", left_on="id", right_on="vertex")
    .merge(
        groups[["id", "group_size", "group_density"]], how="left", left_on="group", right_on="id", suffixes=("", "_")
    )
    .drop(columns=["vertex", "id_"])
    .astype({"group": "Int64", "group_size": "Int64"})
)
features.to_csv(sys.argv[2], index=False)
print(features.sort_values("lambda", ascending=False).head())
