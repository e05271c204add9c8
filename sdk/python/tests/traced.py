"""Runs a program and writes down which functions of the SDK it calls.

    python3 -I -B traced.py OUT PROGRAM

OUT gets a line for each, its qualified name, as it is first called.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

SDK = str(Path(__file__).resolve().parent.parent / "switchyard_plugin") + os.sep


def main() -> None:
    out = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    seen: set[CodeType] = set()

    def called(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code not in seen:
            seen.add(code)
            if os.path.abspath(code.co_filename).startswith(SDK):
                os.write(out, f"{code.co_qualname}\n".encode())

    program = sys.argv[2]
    sys.argv = [program]
    sys.setprofile(called)
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main()
