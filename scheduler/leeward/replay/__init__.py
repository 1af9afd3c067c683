"""Taxi data as a paced, resumable stream: generate or prepare with Spark, then run into Redis.

Two steps: `prepare` (or `generate`) writes sorted Parquet slices of data time with a manifest;
`run` sends them into a Redis stream at a multiple of real time. Spark is imported inside functions only.
"""
