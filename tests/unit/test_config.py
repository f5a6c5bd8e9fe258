"""From YAML and overrides to a checked configuration: all faults at once, suggestions, nothing ignored.

Run: pytest tests/unit/test_config.py
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from pipelines.batching.image_cache import DEFAULT_BYTES
from pipelines.config import DefectConfig, TextConfig, dump_config, load_config
from pipelines.errors import UsageError

MINIMAL = """
run: {name: tiny}
data: {root: datasets/tiny}
model: {network: PP-OCRv4_mobile, weights: a.pdparams}
batching:
  crop_shapes: [[64, 96]]
train:
  updates: 3
  learning_rate: {base: 0.001}
"""

DEFECT = """
run: {name: tiny}
data: {root: datasets/tiny, task: defect_detection}
model: {network: picodet_lcnet_x1_0, weights: a.pdparams}
train:
  updates: 3
  learning_rate: {base: 0.001}
"""


@pytest.fixture
def minimal(tmp_path: Path) -> Path:
    path = tmp_path / "配置 tiny.yml"
    path.write_text(MINIMAL, encoding="utf-8")
    return path


def message_of(path: Path, *overrides: str) -> str:
    with pytest.raises(UsageError) as caught:
        load_config(path, overrides)
    return str(caught.value)


def test_a_minimal_file_is_filled_with_the_documented_defaults(minimal):
    config = load_config(minimal)
    assert (config.run.root, config.run.seed) == (Path("runs"), 0)
    assert (config.train.effective_batch, config.train.micro_batch, config.train.accumulation) == (32, 2, "exact")
    assert config.model.form == "fused" and config.train.batch_norm == "frozen"
    assert config.batching.crop_shapes == [(64, 96)]


SHIPPED = sorted((Path(__file__).parents[2] / "configs").glob("*/*.yml"))


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_every_configuration_that_is_shipped_is_sound(file):
    config = load_config(file)
    assert config.run.name
    # the folder is that of the task, and its first lines show the command
    assert config.data.task == file.parent.name
    assert f"-c configs/{file.parent.name}/{file.name}" in file.read_text(encoding="utf-8").partition("\nrun:")[0]


def test_both_tasks_ship_a_smoke_configuration():
    assert {file.parent.name for file in SHIPPED if file.stem == "smoke"} == {"text_detection", "defect_detection"}


def test_overrides_are_yaml_values_and_the_last_one_wins(minimal):
    config = load_config(
        minimal,
        ["train.updates=5", "train.updates=7", "batching.crop_shapes=[[32, 64], [64, 32]]", "evaluate.tune=null",
         "train.learning_rate.base=1e-4", "train.frozen_updates={neck: 2}", "run.name=a=b"],
    )  # fmt: skip
    assert config.train.updates == 7
    assert config.batching.crop_shapes == [(32, 64), (64, 32)]
    assert config.evaluate.tune is None
    # YAML 1.1 takes 1e-4 for a text; it must not stay one
    assert config.train.learning_rate.base == 0.0001
    assert config.train.frozen_updates == {"neck": 2}
    assert config.run.name == "a=b"


def test_an_override_may_open_a_section_that_the_file_leaves_out(minimal):
    assert load_config(minimal, ["evaluate.tune.unclip_ratios=[1.2, 1.5]"]).evaluate.tune.unclip_ratios == [1.2, 1.5]


def test_all_faults_of_file_and_overrides_come_in_one_message(minimal):
    minimal.write_text(MINIMAL.replace("run: {name: tiny}", "run: {nam: tiny}").replace("96", "97"), encoding="utf-8")
    message = message_of(minimal, "train.effective_batch=0", "model.form=melted")
    assert str(minimal) in message and "5 fault(s)" in message
    for fault in (
        "run.name: required, but missing",
        "run.nam: unknown key; did you mean run.name?",
        "batching.crop_shapes.0.1",
        "train.effective_batch",
        "model.form",
    ):
        assert fault in message


@pytest.mark.parametrize(
    ("mistyped", "meant"),
    [
        ("train.efective_batch=8", "train.effective_batch"),
        ("train.learning_rate.bas=1", "train.learning_rate.base"),
        ("evaluate.setting.unclip=2", "evaluate.setting.unclip_ratio"),
        ("evaluate.tune.limit_side=[960]", "evaluate.tune.limit_sides"),
        ("data.synthetic.trian=3", "data.synthetic.train"),
    ],
)
def test_an_unknown_key_is_refused_with_the_one_that_was_meant(mistyped, meant, minimal):
    assert f"{mistyped.partition('=')[0]}: unknown key; did you mean {meant}?" in message_of(minimal, mistyped)


def test_an_unknown_key_like_no_other_gets_no_suggestion(minimal):
    assert "zzz: unknown key\n" in message_of(minimal, "zzz=1") + "\n"


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        (["train.epochs=2"], "either updates or epochs"),
        (["train.updates=null"], "either updates or epochs"),
        (["train.micro_batch=64"], "micro_batch 64 is more than effective_batch 32"),
    ],
)
def test_settings_that_contradict_each_other_are_refused_with_both_names(overrides, reason, minimal):
    assert reason in message_of(minimal, *overrides)


@pytest.mark.parametrize("name", ["a/b", "a\\\\b", "", ".", ".."])
def test_a_run_name_that_leaves_the_root_is_refused(name, minimal):
    assert "run.name" in message_of(minimal, f'run.name="{name}"')


@pytest.mark.parametrize("name", ["v1.2", ".hidden", "发票 2024", "a..b"])
def test_other_run_names_are_welcome(name, minimal):
    assert load_config(minimal, [f"run.name={name}"]).run.name == name


def test_a_number_for_a_name_is_refused_with_the_way_out(minimal):
    assert "run.name: must be text, but got 2024; put it in quotes" in message_of(minimal, "run.name=2024")
    assert load_config(minimal, ['run.name="2024"']).run.name == "2024"


def test_a_key_that_stands_twice_is_refused_with_its_line_and_not_half_ignored(minimal):
    minimal.write_text(MINIMAL + "model: {network: PP-OCRv5_mobile, weights: b}\n", encoding="utf-8")
    message = message_of(minimal)
    assert "key 'model' stands twice" in message and "line 10" in message


@pytest.mark.parametrize("override", ["train.updates", "=3", "train.=3", ".updates=3", ""])
def test_an_override_without_key_and_value_is_refused_with_an_example(override, minimal):
    assert "section.key=value, for example train.updates=10" in message_of(minimal, override)


def test_an_override_that_takes_a_value_for_a_section_is_refused(minimal):
    assert "'updates' is a value, not a section" in message_of(minimal, "train.updates.first=1")


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"run: [", "can't be read as YAML"), (b"", "NoneType"), (b"- 1", "list"), (b"\xff\xfe\x00", "can't be read")],
)
def test_a_file_that_is_no_configuration_is_refused_by_name(content, reason, tmp_path):
    path = tmp_path / "odd.yml"
    path.write_bytes(content)
    message = message_of(path)
    assert str(path) in message and reason in message


def test_a_byte_order_mark_does_no_harm(minimal):
    minimal.write_bytes(b"\xef\xbb\xbf" + minimal.read_bytes())
    assert load_config(minimal).run.name == "tiny"


def test_a_missing_file_points_to_the_ready_ones(tmp_path):
    assert "ready ones are under configs/" in message_of(tmp_path / "gone.yml")


def test_the_configuration_as_run_loads_as_the_same_configuration(minimal, tmp_path):
    config = load_config(minimal, ["data.root=数据 root", "evaluate.tune.max_images=3"])
    written = tmp_path / "config.yml"
    written.write_text(dump_config(config), encoding="utf-8")
    assert load_config(written) == config
    # whole: nothing is left to defaults that a later version may change
    assert set(yaml.safe_load(written.read_text(encoding="utf-8"))) == set(TextConfig.model_fields)


def test_the_cache_of_decoded_images_may_be_off_but_not_negative(minimal):
    assert load_config(minimal, ["batching.cache_mib=0"]).batching.cache_mib == 0
    assert load_config(minimal).batching.cache_mib * 2**20 == DEFAULT_BYTES
    with pytest.raises(UsageError, match=r"batching\.cache_mib.*-1"):
        load_config(minimal, ["batching.cache_mib=-1"])


@pytest.mark.parametrize("wrong", [-0.1, 0.6])
def test_a_perspective_out_of_range_is_refused_by_name(wrong, minimal):
    assert load_config(minimal).batching.perspective == 0
    with pytest.raises(UsageError, match=rf"batching\.perspective.*{wrong}"):
        load_config(minimal, [f"batching.perspective={wrong}"])


def test_a_checked_configuration_cannot_be_changed(minimal):
    config = load_config(minimal)
    with pytest.raises(ValueError, match="frozen"):
        config.train.updates = 9


@pytest.fixture
def defect(tmp_path: Path) -> Path:
    path = tmp_path / "defect.yml"
    path.write_text(DEFECT, encoding="utf-8")
    return path


def test_the_task_that_the_data_names_decides_which_settings_there_are(minimal, defect):
    assert isinstance(load_config(minimal), TextConfig)
    config = load_config(defect)
    assert isinstance(config, DefectConfig)
    assert (config.evaluate.view.tile, config.evaluate.objective, config.batching.ok_share) == (640, "ap_50", 0.8)


def test_an_unknown_task_is_refused_with_the_known_ones(defect):
    message = message_of(defect, "data.task=defect_detecton")
    assert "data.task must be one of text_detection, defect_detection, but got 'defect_detecton'" in message


@pytest.mark.parametrize(
    ("mistyped", "meant"),
    [
        ("evaluate.view.overlp=64", "evaluate.view.overlap"),
        ("batching.okshare=0.5", "batching.ok_share"),
        ("evaluate.wanted_miss=0.1", "evaluate.wanted_miss_rate"),
        ("data.synthetic.ok_shares=0.5", "data.synthetic.ok_share"),
    ],
)
def test_an_unknown_key_of_a_defect_run_is_refused_with_the_one_that_was_meant(mistyped, meant, defect):
    assert f"{mistyped.partition('=')[0]}: unknown key; did you mean {meant}?" in message_of(defect, mistyped)


@pytest.mark.parametrize("key", ["evaluate.setting.unclip_ratio=1.5", "batching.crop_shapes=[[64, 64]]", "targets={}"])
def test_settings_of_text_are_unknown_to_a_defect_run(key, defect):
    assert f"{key.partition('=')[0].split('.unclip')[0]}: unknown key" in message_of(defect, key)


@pytest.mark.parametrize(
    ("override", "reason"),
    [
        ("evaluate.view={tile: 256, overlap: 256}", "overlap 256 must be below tile 256: tiles would never move on"),
        ("batching={crop: [128, 64], overlap: 64}", "overlap 64 must be below crop (128, 64)"),
        ("batching.ok_share=1.0", "batching.ok_share"),
        ("evaluate.objective=hmean", "evaluate.objective"),
        ("evaluate.view.tile=250", "evaluate.view.tile"),
    ],
)
def test_defect_settings_out_of_range_are_refused_by_name(override, reason, defect):
    assert reason in message_of(defect, override)


def test_a_defect_configuration_as_run_loads_as_the_same_configuration(defect, tmp_path):
    config = load_config(defect, ["data.synthetic={train: 5, val: 5}", "model.weights_classes=[划痕, pit]"])
    written = tmp_path / "as_run.yml"
    written.write_text(dump_config(config), encoding="utf-8")
    assert load_config(written) == config
