"""A run of `prepare` that was stopped goes on, to the same bytes. Run: pytest tests/unit/prep/test_work_folder.py"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from pipelines.errors import DataError, UsageError
from pipelines.prep import prepare_text
from pipelines.prep.images import ImageFacts
from pipelines.prep.journal import Journal, stamp_of
from pipelines.prep.work_folder import work_folder

ROOT = Path(__file__).resolve().parents[3]
KILLED_RUN = """
import os, signal, sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from pipelines.prep import prepare_text

class Killing(ThreadPoolExecutor):
    num_jobs = 0

    def submit(self, fn, /, *args, **kwargs):
        Killing.num_jobs += 1
        if Killing.num_jobs > int(sys.argv[3]):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().submit(fn, *args, **kwargs)

with Killing(2) as executor:
    prepare_text(Path(sys.argv[1]), "paddleocr", Path(sys.argv[2]), workers=2, executor=executor)
"""


def tree(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def stop_after(num_jobs: int, source: Path, out: Path) -> None:
    """Prepare in another process that kills itself (SIGKILL) in place of its next job."""
    arguments = [sys.executable, "-c", KILLED_RUN, str(source), str(out), str(num_jobs)]
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.fixture
def source(labelled: Path) -> Path:
    """Ten JPEGs and a transparent PNG to convert, all labelled: 11 jobs to examine, 11 to write."""
    Image.new("RGBA", (40, 30), (9, 9, 9, 99)).save(labelled / "odd.png")
    with (labelled / "Label.txt").open("a") as labels:
        labels.write('odd.png\t[{"transcription": "x", "points": [[1, 1], [20, 9], [20, 1], [1, 9]]}]\n')
    return labelled


@pytest.fixture
def whole(source: Path, tmp_path: Path) -> dict[str, bytes]:
    """What a run that nothing stops writes."""
    prepare_text(source, "paddleocr", tmp_path / "whole")
    return tree(tmp_path / "whole")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_run_killed_again_and_again_ends_with_the_bytes_of_one_that_was_not(source, whole, tmp_path):
    out = tmp_path / "out"
    for num_jobs in (0, 6, 9, 7):  # before the first, in examining, at the 2nd to write, at the 8th
        stop_after(num_jobs, source, out)
        assert not out.exists() and (tmp_path / "out.partial").is_dir()
    examined, written = _known(tmp_path / "out.partial")
    assert examined == 11 and 0 < written < 11
    report = prepare_text(source, "paddleocr", out)
    assert report.resumed.endswith(f": 11 images examined, {written} written before")
    assert tree(out) == whole and not (tmp_path / "out.partial").exists()


def _known(folder: Path) -> tuple[int, int]:
    entries = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    return sum("examined" in entry for entry in entries), sum("written" in entry for entry in entries)


@pytest.fixture
def stopped(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """OUT of a run that Ctrl-C stopped when all was examined and five of ten JPEGs were copied."""
    copied: list[Path] = []
    copy = shutil.copyfile

    def copy_five(source: Path, target: Path) -> None:
        if len(copied) == 5:
            raise KeyboardInterrupt
        copied.append(copy(source, target))

    with monkeypatch.context() as patched:
        patched.setattr("pipelines.prep.write.shutil.copyfile", copy_five)
        with pytest.raises(KeyboardInterrupt):
            prepare_text(source, "paddleocr", tmp_path / "out", workers=1)
    return tmp_path / "out"


def test_what_is_done_is_not_done_again(source, whole, stopped, monkeypatch):
    copied: list[Path] = []
    copy = shutil.copyfile
    monkeypatch.setattr("pipelines.prep.write.shutil.copyfile", lambda *files: copied.append(copy(*files)))
    monkeypatch.setattr("pipelines.prep.examination.examine_image", lambda path, **options: pytest.fail(str(path)))
    prepare_text(source, "paddleocr", stopped, workers=3)
    assert len(copied) == 5 and tree(stopped) == whole


def test_a_torn_last_line_costs_that_line_alone(source, whole, stopped, tmp_path):
    journal = tmp_path / "out.partial" / "journal.jsonl"
    before = journal.read_bytes()
    journal.write_bytes(before[:-7])
    assert prepare_text(source, "paddleocr", stopped).resumed.endswith("11 images examined, 5 written before")  # of 6
    assert tree(stopped) == whole


def test_an_image_changed_since_is_examined_anew(source, stopped, tmp_path, write_picture):
    write_picture(source / "roll0_0.jpg", seed=77)
    write_picture(source / "roll0_1.jpg", seed=78)
    prepare_text(source, "paddleocr", stopped)
    prepare_text(source, "paddleocr", tmp_path / "fresh")
    assert tree(stopped) == tree(tmp_path / "fresh")


def test_an_image_damaged_in_the_work_folder_is_written_anew(source, whole, stopped, tmp_path):
    for path in (tmp_path / "out.partial" / "dataset" / "images").iterdir():
        path.write_bytes(path.read_bytes()[:100])
    prepare_text(source, "paddleocr", stopped)
    assert tree(stopped) == whole


def test_an_image_no_longer_labelled_does_not_stay(source, stopped, tmp_path):
    labels = (source / "Label.txt").read_text().splitlines(keepends=True)
    (source / "Label.txt").write_text("".join(labels[1:]))
    prepare_text(source, "paddleocr", stopped)
    prepare_text(source, "paddleocr", tmp_path / "fresh")
    assert tree(stopped) == tree(tmp_path / "fresh") and "images/roll0_0.jpg" not in tree(stopped)


def test_another_split_or_number_of_workers_goes_on_and_gives_what_it_gives_alone(source, stopped, tmp_path):
    report = prepare_text(source, "paddleocr", stopped, seed=5, val_share=0.4, workers=3)
    assert report.resumed.startswith("going on from")
    prepare_text(source, "paddleocr", tmp_path / "fresh", seed=5, val_share=0.4)
    assert tree(stopped) == tree(tmp_path / "fresh")


def test_another_request_starts_anew_and_says_so(source, stopped, tmp_path):
    other = shutil.copytree(source, tmp_path / "other")
    report = prepare_text(other, "paddleocr", stopped)
    assert report.resumed.endswith(f"(source was '{source}', is '{other}'): started anew")
    prepare_text(other, "paddleocr", tmp_path / "fresh")
    assert tree(stopped) == tree(tmp_path / "fresh")


def test_a_refused_request_leaves_nothing(source, tmp_path):
    (source / "Label.txt").write_text('odd.png\t[{"transcription": "x", "points": [[1, 1], [9, 1], [9, 9]]}]\n')
    with pytest.raises(DataError, match="all 1 images are in 1 group"):
        prepare_text(source, "paddleocr", tmp_path / "out")
    assert os.listdir(tmp_path) == ["source"]


def test_a_dry_run_makes_no_work_folder(source, tmp_path):
    prepare_text(source, "paddleocr", tmp_path / "out", dry_run=True)
    assert os.listdir(tmp_path) == ["source"]


@pytest.mark.parametrize("names", [["mine.txt"], ["journal.jsonl", "dataset", "mine.txt"], ["dataset"]])
def test_a_folder_of_the_user_s_in_the_way_is_refused_and_stays(source, tmp_path, names):
    for name in names:
        (tmp_path / "out.partial" / name).mkdir(parents=True)
    with pytest.raises(UsageError, match=r"out\.partial is needed for work in progress"):
        prepare_text(source, "paddleocr", tmp_path / "out")
    assert sorted(os.listdir(tmp_path / "out.partial")) == sorted(names)


@pytest.mark.skipif(sys.platform == "win32", reason="the lock is flock's")
def test_two_runs_at_once_do_not_mix(tmp_path):
    request = {"source": "a"}
    with work_folder(tmp_path / "out", request) as work:
        (work.dataset / "mine").write_text("first")
        with pytest.raises(UsageError, match="another prepare is at work"), work_folder(tmp_path / "out", request):
            pass
        assert (work.dataset / "mine").read_text() == "first"
    assert tree(tmp_path / "out") == {"mine": b"first"}


def test_a_journal_remembers_facts_of_files_that_have_not_changed(tmp_path):
    picture = tmp_path / "a \udce4.jpg"  # a name that is no UTF-8
    picture.write_bytes(b"123")
    facts = ImageFacts(size_hw=(3, 4), sha256="abc", note="2 pages", suffix=".png")
    with (tmp_path / "journal.jsonl").open("a+b") as handle:
        journal = Journal(handle)
        assert journal.request is None
        journal.begin({"source": "a"})
        journal.add_facts(picture, stamp_of(picture), facts)
        journal.add_written("images/a.jpg", "abc", "def")
    with (tmp_path / "journal.jsonl").open("a+b") as handle:
        journal = Journal(handle)
        assert journal.request == {"source": "a"} and (journal.num_examined, journal.num_written) == (1, 1)
        assert journal.facts(picture, stamp_of(picture)) == facts
        assert journal.written("images/a.jpg", "abc") == "def"
        assert journal.written("images/a.jpg", "abd") == "" == journal.written("images/b.jpg", "abc")
        picture.write_bytes(b"1234")
        assert journal.facts(picture, stamp_of(picture)) is None


@pytest.mark.parametrize("garbage", [b"\0\0\0\n", b"[1]\n", b'{"examined": "x"}\n', b'{"other": 1}\n', b'{"a'])
def test_what_follows_a_damaged_line_is_forgotten_and_new_lines_are_whole(tmp_path, garbage):
    file = tmp_path / "journal.jsonl"
    with file.open("a+b") as handle:
        Journal(handle).begin({"source": "a"})
    sound = file.read_bytes()
    file.write_bytes(sound + garbage + b'{"written": "x", "source_sha256": "1", "sha256": "2"}\n')
    with file.open("a+b") as handle:
        journal = Journal(handle)
        assert journal.request == {"source": "a"} and journal.num_written == 0
        journal.add_written("y", "1", "2")
    assert file.read_bytes() == sound + b'{"written": "y", "source_sha256": "1", "sha256": "2"}\n'
