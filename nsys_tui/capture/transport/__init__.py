"""The line to another machine: OpenSSH, its questions, reconnecting, and files across it."""
