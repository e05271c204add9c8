"""The wheel: it is built by the backend that pyproject.toml names, and holds the whole SDK."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

SDK = Path(__file__).resolve().parent.parent


class WheelTest(unittest.TestCase):
    def test_wheel(self) -> None:
        if importlib.util.find_spec("setuptools") is None or importlib.util.find_spec("wheel") is None and not _bundles_wheel():
            self.skipTest("setuptools or wheel is not installed; no wheel was built")
        with tempfile.TemporaryDirectory() as directory:
            source = Path(directory) / "source"
            shutil.copytree(SDK, source, ignore=shutil.ignore_patterns("__pycache__", "tests", "bench", "build", "*.egg-info"))
            build = "import sys; from setuptools import build_meta; print(build_meta.build_wheel(sys.argv[1]))"
            out = subprocess.run([sys.executable, "-c", build, directory], cwd=source, capture_output=True, text=True, timeout=300)
            self.assertEqual(out.returncode, 0, out.stderr)
            wheel = Path(directory) / out.stdout.split()[-1]
            with zipfile.ZipFile(wheel) as archive:
                names = {n for n in archive.namelist() if n.startswith("switchyard_plugin/")}
            files = {p.relative_to(SDK).as_posix() for p in (SDK / "switchyard_plugin").rglob("*") if p.is_file() and "__pycache__" not in p.parts}
            self.assertEqual(names, files)
            program = f"import sys; sys.path.insert(0, {str(wheel)!r}); import switchyard_plugin; print(switchyard_plugin.SessionPlugin.__module__)"
            found = subprocess.run([sys.executable, "-I", "-c", program], cwd=directory, capture_output=True, text=True, timeout=60)
            self.assertEqual(found.stdout.strip(), "switchyard_plugin.plugin", found.stderr)


def _bundles_wheel() -> bool:
    try:
        return importlib.util.find_spec("setuptools.command.bdist_wheel") is not None
    except ImportError:
        return False


if __name__ == "__main__":
    unittest.main()
