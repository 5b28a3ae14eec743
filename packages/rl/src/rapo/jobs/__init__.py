"""Jobs: what the paper's studies and the suite run, and the folder that their results are in.

- job: what a job is, and names that are made of everything a result depends on
- run: jobs side by side in processes of this machine, with a bar of progress
- cluster: the same on a Ray cluster
- lock: one program at a time in a folder
- folder: `manifest.json`, which says what a folder of results holds
- tables: data frames as Parquet files
"""
