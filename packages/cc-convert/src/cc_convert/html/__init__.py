"""The report as one static page: charts as inline SVG, transcripts, no network, and no script that it depends on."""
