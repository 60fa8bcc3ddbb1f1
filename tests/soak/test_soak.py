"""A short soak: what the long one asks of the service, in seconds."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_sixty_four_clients_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    argv = (sys.executable, "-m", "tests.soak", "8", "--clients", "64", "--dir", tmp_path)
    ran = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.endswith("all is well\n")
    assert "backpressure" not in ran.stdout
    assert list(tmp_path.iterdir()) == []
