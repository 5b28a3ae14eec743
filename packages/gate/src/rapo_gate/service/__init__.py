"""The gate over HTTP: a thin layer over `rapo_gate.Gate`.

- app, guard, serve: the server, and what every request passes through
- models, api: the API
- auth, site, pages, lists, charts: the reviewer's page
- audits: questions about the gate, and a process beside the server that answers them
"""
