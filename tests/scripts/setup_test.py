#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/setup.sh, run with stand-ins for dpkg-query, apt-get and sudo that write down how they were called."""
import subprocess
import tempfile
import unittest
from pathlib import Path

SETUP = Path(__file__).resolve().parents[2] / "scripts" / "setup.sh"

# Answers "installed" for every package asked about but the missing ones; an unknown package is an error, as in dpkg.
DPKG_QUERY = """#!/bin/sh
shift 3 2>/dev/null
status=0
for package; do
  case " $MISSING " in
    *" $package "*) echo "no packages found matching $package" >&2; status=1 ;;
    *) case " $REMOVED " in
         *" $package "*) echo "config-files $package" ;;
         *) echo "installed $package" ;;
       esac ;;
  esac
done
exit $status
"""
APT_GET = """#!/bin/sh
echo "$*" >>"$CALLS"
case "$1" in
  "$APT_FAILS") echo "E: no network" >&2; exit 100 ;;
esac
"""
SUDO = """#!/bin/sh
exec "$@"
"""


class Setup(unittest.TestCase):
    def setup_with(self, *arguments, missing="", removed="", apt_fails="nothing"):
        """Exit status, stdout, stderr and the calls of apt-get."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("dpkg-query", DPKG_QUERY), ("apt-get", APT_GET), ("sudo", SUDO)):
                tool = Path(folder, name)
                tool.write_text(text, encoding="utf-8")
                tool.chmod(0o755)
            calls = Path(folder, "calls")
            result = subprocess.run(
                ["bash", SETUP, *arguments], capture_output=True, text=True,
                env={"PATH": f"{folder}:/usr/bin:/bin", "CALLS": str(calls), "MISSING": missing, "REMOVED": removed,
                     "APT_FAILS": apt_fails})
            lines = calls.read_text(encoding="utf-8").splitlines() if calls.exists() else []
            return result.returncode, result.stdout, result.stderr, lines

    def test_nothing_missing_calls_nothing_and_says_nothing(self):
        self.assertEqual(self.setup_with(), (0, "", "", []))

    def test_installs_what_is_missing_and_only_that(self):
        status, out, _, calls = self.setup_with(missing="libfmt-dev", removed="ninja-build")
        self.assertEqual(status, 0)
        self.assertEqual(calls, ["update", "install -y --no-install-recommends ninja-build libfmt-dev"])
        self.assertEqual(out, "setup: installing ninja-build libfmt-dev\n")

    def test_the_browser_is_asked_for_alone(self):
        status, _, _, calls = self.setup_with("browser", missing="cmake chromium-headless-shell")
        self.assertEqual(status, 0)
        self.assertEqual(calls, ["update", "install -y --no-install-recommends chromium-headless-shell"])

    def test_a_failed_update_alone_is_no_failure(self):
        status, _, _, calls = self.setup_with(missing="cmake", apt_fails="update")
        self.assertEqual((status, len(calls)), (0, 2))

    def test_a_failed_install_ends_in_one_clear_line(self):
        status, _, error, _ = self.setup_with(missing="cmake", apt_fails="install")
        self.assertEqual(status, 1)
        self.assertEqual(error.splitlines()[-1], "setup: apt-get could not install: cmake")


if __name__ == "__main__":
    unittest.main()
