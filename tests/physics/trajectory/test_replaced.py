"""Files that are replaced as a whole: by several processes at the same time, and through no link."""

import pytest

from physics.trajectory.locks import replace_as_a_whole


def test_a_file_may_be_replaced_by_several_at_the_same_time(tmp_path):
    path = tmp_path / "kept.bin"

    def first(file):
        replace_as_a_whole(path, lambda other: other.write(b"second"))
        assert path.read_bytes() == b"second"
        file.write(b"first")

    replace_as_a_whole(path, first)
    (tmp_path / "plain").touch()
    assert path.read_bytes() == b"first"
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode
    assert {one.name for one in tmp_path.iterdir()} == {"kept.bin", "plain"}


@pytest.mark.parametrize("alone", [False, True])
def test_no_link_is_followed_by_what_replaces_a_file(tmp_path, alone):
    path, victim = tmp_path / "kept.bin", tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / "kept.bin.partial").symlink_to(victim)
    replace_as_a_whole(path, lambda file: file.write(b"new"), alone=alone)
    assert (path.read_bytes(), path.is_symlink()) == (b"new", False)
    assert victim.read_bytes() == b"precious"
    assert (tmp_path / "kept.bin.partial").is_symlink() is not alone
