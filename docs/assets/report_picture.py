"""Make docs/assets/report.png: the top of a real report, as a browser shows it.

    python docs/assets/report_picture.py [--browser chromium]

Needs Chromium or Chrome. The same seed gives the same report.
"""

import argparse
import subprocess
import tempfile
from pathlib import Path

from PIL import Image

from evenhand.curation.curate import curate
from evenhand.datasets import load

WIDTH, HEIGHT = 1120, 1180
QUIET = (
    "--headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update --disable-sync "
    "--no-first-run --hide-scrollbars"
)


def main() -> None:
    """Run curate, open its report, keep the top of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--browser", default="chromium")
    browser = parser.parse_args().browser
    target = Path(__file__).with_name("report.png")
    with tempfile.TemporaryDirectory() as folder:
        page, shot = Path(folder) / "report.html", Path(folder) / "report.png"
        page.write_text(curate(load("adult"), budget=2000).report(), encoding="utf-8")
        options = [*QUIET.split(), f"--user-data-dir={folder}/profile", f"--window-size={WIDTH},{HEIGHT}"]
        subprocess.run([browser, *options, f"--screenshot={shot}", page.as_uri()], check=True, capture_output=True)
        picture = Image.open(shot).convert("RGB").resize((WIDTH * 3 // 4, HEIGHT * 3 // 4), Image.Resampling.LANCZOS)
    # few colours are enough for letters and bars, and make a small file
    picture.quantize(64, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(target, optimize=True)


if __name__ == "__main__":
    main()
