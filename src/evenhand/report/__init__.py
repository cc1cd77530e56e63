"""What reports and pages share: charts as inline SVG, and templates."""
