"""Rows into sums: by period, session, model, project, block and tool."""
