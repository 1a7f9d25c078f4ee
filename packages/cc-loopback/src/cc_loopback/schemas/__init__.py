"""Example values for JSON Schemas: proposals by type, name and format, checked by jsonschema."""
