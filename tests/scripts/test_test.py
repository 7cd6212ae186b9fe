#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How scripts/test.py counts: by what ctest wrote, a skipped or missing test never as passed."""
import importlib.util
import tempfile
import unittest
from collections import Counter
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "test.py"
spec = importlib.util.spec_from_file_location("test_script", SCRIPT)
script = importlib.util.module_from_spec(spec)
spec.loader.exec_module(script)

# One test case of every kind that ctest 3.25 writes.
PASSED = '<testcase name="a" status="run"/>'
FAILED = '<testcase name="b" status="fail"><failure message=""/></testcase>'
SKIPPED = '<testcase name="c" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>'
DISABLED = '<testcase name="d" status="disabled"/>'
NO_PROGRAM = '<testcase name="e" status="notrun"><skipped message="Unable to find executable"/></testcase>'


class Tally(unittest.TestCase):
    def tally(self, *cases):
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder, "junit.xml")
            report.write_text(f"<testsuite>{''.join(cases)}</testsuite>", encoding="utf-8")
            return script.tally(report)

    def test_every_kind(self):
        self.assertEqual(self.tally(PASSED, PASSED, FAILED, SKIPPED, DISABLED, NO_PROGRAM),
                         Counter(passed=2, failed=2, skipped=2))
        self.assertEqual(self.tally(), Counter())


class PytestTally(unittest.TestCase):
    """What pytest writes: a testcase with at most one child that says what went wrong."""

    def test_every_kind(self):
        cases = ['<testcase name="a" time="0.1"/>', '<testcase name="b"><failure message="m">text</failure></testcase>',
                 '<testcase name="c"><error message="m">text</error></testcase>',
                 '<testcase name="d"><skipped type="pytest.skip" message="no CUDA device"/></testcase>',
                 '<testcase name="e"><system-out>words</system-out></testcase>']
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder, "python.xml")
            report.write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>", encoding="utf-8")
            self.assertEqual(script.tally_pytest(report), Counter(passed=2, failed=2, skipped=1))


class Verdict(unittest.TestCase):
    """What a preset counts for, given ctest's exit status and tallies."""

    def test_no_test_at_all_is_a_failure_where_tests_must_be(self):
        self.assertEqual(script.settle(True, Counter(), may_be_empty=False), Counter(failed=1))
        self.assertEqual(script.settle(True, Counter(skipped=3), may_be_empty=False), Counter(skipped=3, failed=1))
        self.assertEqual(script.settle(True, Counter(), may_be_empty=True), Counter())

    def test_a_failure_of_ctest_itself_is_counted(self):
        self.assertEqual(script.settle(False, Counter(passed=5), may_be_empty=False), Counter(passed=5, failed=1))
        self.assertEqual(script.settle(False, Counter(passed=5, failed=2), may_be_empty=False),
                         Counter(passed=5, failed=2))

    def test_the_last_line(self):
        self.assertEqual(script.closing_line(Counter(passed=3)), "3 passed, 0 failed")
        self.assertEqual(script.closing_line(Counter(passed=3, failed=1, skipped=2)), "3 passed, 1 failed, 2 skipped")


if __name__ == "__main__":
    unittest.main()
