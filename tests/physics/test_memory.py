"""The limits of a container or a batch job, from the files of control groups."""

import math

import pytest

from physics import InputError, checks

GIB = 2**30


def write(root, cgroup, limits):
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(cgroup)
    for path, value in limits.items():
        file = root / "sys/fs/cgroup" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(value)


@pytest.mark.parametrize(
    ("cgroup", "limits", "limit"),
    [
        ("0::/job/step\n", {"job/step/memory.max": "max\n", "job/memory.max": f"{GIB}\n"}, GIB),
        ("0::/job/step\n", {"job/step/memory.max": "5\n", "job/memory.max": f"{GIB}\n"}, 5),
        ("0::/\n", {"memory.max": f"{GIB}\n"}, GIB),  # a container sees its own group as the root
        ("0::/../../host\n", {"memory.max": f"{GIB}\n"}, GIB),
        ("0::/a\n", {"a/memory.max": "max\n"}, math.inf),
        ("2:cpu:/x\n", {"memory.max": "1\n"}, math.inf),
    ],
)
def test_the_least_limit_of_all_groups_around_counts(tmp_path, cgroup, limits, limit):
    write(tmp_path, cgroup, limits)
    assert checks.group_limit(tmp_path) == limit


def test_without_control_groups_there_is_no_limit(tmp_path):
    assert checks.group_limit(tmp_path) == math.inf


def test_what_exceeds_the_limit_of_a_group_is_refused(monkeypatch):
    monkeypatch.setattr(checks, "group_limit", lambda: float(GIB))
    checks.require_memory("all frames", GIB, "take fewer")
    with pytest.raises(InputError, match=r"all frames need 1\.5 GiB, more than the 1\.0 GiB .* take fewer"):
        checks.require_memory("all frames", 1.5 * GIB, "take fewer")
