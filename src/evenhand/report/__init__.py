"""What reports and pages share: charts as inline SVG, and the templates they stand in."""
