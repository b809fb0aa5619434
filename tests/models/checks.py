"""Runs the checks of a file and counts them; what check_models.py and check_data.py share."""
import subprocess


def is_sanitized(program):
    """True if a sanitizer watches the program, which makes it many times slower."""
    with open(program, "rb") as stream:
        content = stream.read()
    return b"__asan_init" in content or b"__tsan_init" in content


def run_all(names, call):
    """Calls call(check) for each function check_… of `names`; it gives back what is wrong, or
    None. Prints that, and a last line of counts. Returns the exit code."""
    passed, failed = 0, 0
    for check in [value for name, value in names.items() if name.startswith("check_")]:
        try:
            problem = call(check)
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            problem = f"{type(error).__name__}: {error}"
        passed, failed = passed + (problem is None), failed + (problem is not None)
        if problem:
            print(f"FAIL {check.__doc__}\n{problem}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0
