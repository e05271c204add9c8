"""The guide: its code is that of programs that are tested, and its example runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import switchyard_plugin

from .support import ROOT
from .test_call import MANIFEST, PROJECT, request

GUIDE = ROOT / "docs" / "sdk-python.md"


class GuideTest(unittest.TestCase):
    def test_code_is_tested_code(self) -> None:
        text = GUIDE.read_text(encoding="utf-8")
        blocks = re.findall(r"<!-- code: (\S+) -->\n```python\n(.*?)```", text, re.DOTALL)
        self.assertEqual(len(blocks), text.count("```python"))
        self.assertGreater(len(blocks), 5)
        for place, code in blocks:
            self.assertIn(code.strip("\n"), (ROOT / place).read_text(encoding="utf-8"), place)

    def test_names_exist(self) -> None:
        text = GUIDE.read_text(encoding="utf-8")
        for name in re.findall(r"`(?:op|host)\.(\w+)", text):
            places = (switchyard_plugin.Operation, __import__("switchyard_plugin.testing", fromlist=["Host"]).Host)
            known = any(hasattr(p, name) for p in places) or name in ("context", "payload", "settings")
            self.assertTrue(known, name)
        for name in re.findall(r"`@?plugin\.(?!json)(\w+)", text):
            self.assertTrue(hasattr(switchyard_plugin.SessionPlugin, name), name)

    def test_the_example_of_the_call_protocol(self) -> None:
        scopes = ["project.metadata.read", "project.files.read", "project.operate"]
        initialize = {"protocolVersion": "switchyard.plugin/v1", "hostVersion": "1", "grantedScopes": scopes}
        with tempfile.TemporaryDirectory() as directory:
            (Path(directory) / "plugin.json").write_text(json.dumps(MANIFEST), encoding="utf-8")
            project = {**PROJECT, "root": directory}
            ended = subprocess.run(
                [sys.executable, "-B", str(Path(__file__).with_name("guide_call.py"))],
                cwd=directory,
                env={"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).resolve().parent.parent)},
                input=b"".join(
                    [
                        request(1, "initialize", initialize),
                        request(2, "project.operate", {"project": project, "action": "touch", "input": {}}),
                        request(3, "project.inspect", {"project": project}),
                    ]
                ),
                capture_output=True,
                timeout=120,
            )
            answers = [json.loads(line) for line in ended.stdout.splitlines()]
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(answers[1]["result"]["status"], "succeeded")
        self.assertEqual([f["value"] for f in answers[2]["result"]["facts"]], ["plugin.json", "touched"])


if __name__ == "__main__":
    unittest.main()
