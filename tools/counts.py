"""How many tests a program ran, read from what it printed.

Three kinds of output are known: the plain closing line of the golden runner and
of scripts, the summaries of cmocka, and ctest's JUnit report, which holds the
output of many programs. A program that counts nothing is one test. One that
ends badly without reporting a failure (a crash, a time-out, a sanitizer) is one
failed test. Skipped tests are never counted as passed.

>>> count_output("3 passed, 1 failed, 2 skipped\\n", ok=False)
(3, 1, 2)
>>> count_output("[  PASSED  ] 2 test(s).\\n[  SKIPPED ] 1 test(s), listed below:\\n", ok=True)
(2, 0, 1)
>>> count_output("[  PASSED  ] 2 test(s).\\n[  FAILED  ] 1 test(s), listed below:\\n", ok=False)
(2, 1, 0)
>>> count_output("[  PASSED  ] 2 test(s).\\n[  PASSED  ] 3 test(s).\\n", ok=True)
(5, 0, 0)
>>> count_output("[ RUN      ] test_that_crashes\\n", ok=False)
(0, 1, 0)
>>> count_output("[  PASSED  ] 2 test(s).\\nERROR: LeakSanitizer\\n", ok=False)
(2, 1, 0)
>>> count_output("all is well\\n", ok=True)
(1, 0, 0)
>>> count_output("0 passed, 0 failed, 0 skipped\\n", ok=True)
(0, 0, 0)
"""
import re
import xml.etree.ElementTree as xml

PLAIN = re.compile(r"^(?:\S+: )?(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.M)
CMOCKA = re.compile(r"^\[  (PASSED|FAILED|SKIPPED) +\] (\d+) test\(s\)", re.M)


def add(a, b):
    return tuple(x + y for x, y in zip(a, b))


def count_output(output, ok):
    """(passed, failed, skipped) of one program; `ok`: it exited with 0."""
    total, counted = (0, 0, 0), False
    for match in list(PLAIN.finditer(output))[-1:]:
        total, counted = tuple(int(n or 0) for n in match.groups()), True
    for kind, number in CMOCKA.findall(output):
        place = ("PASSED", "FAILED", "SKIPPED").index(kind)
        total, counted = add(total, [int(number) * (i == place) for i in range(3)]), True
    if not ok and total[1] == 0:
        return add(total, (0, 1, 0))
    return total if counted else (1, 0, 0)


def count_ctest(report, ok):
    """The same over all programs in ctest's report; one that did not run failed.

    >>> import io
    >>> count_ctest(io.StringIO('''<testsuite>
    ... <testcase status="run"><system-out>[  PASSED  ] 2 test(s).</system-out></testcase>
    ... <testcase status="fail"><system-out>[ RUN      ] a</system-out></testcase>
    ... <testcase status="notrun"/></testsuite>'''), ok=False)
    (2, 2, 0)
    """
    total = (0, 0, 0)
    for case in xml.parse(report).getroot().iter("testcase"):
        output = case.findtext("system-out") or ""
        if case.get("status") in ("notrun", "disabled"):
            total = add(total, (0, 1, 0))
        else:
            total = add(total, count_output(output, case.get("status") == "run"))
    return total if ok or total[1] else add(total, (0, 1, 0))
