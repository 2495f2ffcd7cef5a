"""Runs a command and writes how much memory it used: peak_memory.py FILE COMMAND...

FILE gets the most memory, in KB. The exit code is the command's. A process of its own stands between, because
a process begins its count with what the process that started it uses.
"""

import os
import subprocess
import sys


def main() -> None:
    process = subprocess.Popen(sys.argv[2:])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    with open(sys.argv[1], "w") as file:
        file.write(str(usage.ru_maxrss))
    sys.exit(process.returncode)


if __name__ == "__main__":
    main()
