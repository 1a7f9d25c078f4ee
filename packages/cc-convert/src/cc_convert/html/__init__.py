"""The report as a static page: charts as inline SVG, transcripts, no network access, usable without scripts."""
