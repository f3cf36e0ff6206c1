"""What ssh runs for a question: hands it to the app over a socket and prints the answer.

Runs alone, isolated (``python -I -S``), so it imports nothing of this package.
"""

import json
import os
import socket
import sys


def main() -> int:
    """Returns 0 with the answer on stdout, 1 when the user cancelled or nobody listens."""
    question = {
        "token": os.environ.get("NSYS_TUI_ASKPASS_TOKEN", ""),
        "prompt": sys.argv[1] if len(sys.argv) > 1 else "",
        "hint": os.environ.get("SSH_ASKPASS_PROMPT", ""),
    }
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(os.environ["NSYS_TUI_ASKPASS_SOCKET"])
            line.sendall(json.dumps(question).encode() + b"\n")
            answer = json.loads(line.makefile("rb").readline() or b"{}")
    except (OSError, KeyError, ValueError):
        return 1
    if "answer" not in answer:
        return 1
    sys.stdout.write(answer["answer"] + "\n")
    return 0


sys.exit(main())
