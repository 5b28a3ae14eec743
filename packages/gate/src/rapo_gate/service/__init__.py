"""The gate over HTTP: a thin layer over `rapo_gate.Gate`.

- app, strict, serve: the server
- models, api: the API
- auth, site, lists, pages, charts: the reviewer's page
- questions: what is asked, and a process beside the server that answers
"""
