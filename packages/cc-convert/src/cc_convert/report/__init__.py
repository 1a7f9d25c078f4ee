"""Sum up rows: by period, session, model, project, block and tool."""
