"""Finding and reading checkpoints: a small server stands in for the model hub."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

torch = pytest.importorskip("torch", reason="needs the gpu extra")

import huggingface_hub.constants
from safetensors.torch import save_file

from croc_annotate.benchmark.metric import MetricError, MetricOptions
from croc_annotate.benchmark.metrics import torch_support
from croc_annotate.benchmark.metrics.checkpoint_files import read_weights, weight_names
from croc_annotate.benchmark.metrics.model_folder import folder_digest

pytestmark = pytest.mark.torch

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CONFIG = b'{"model_type": "clip"}'


class Hub(BaseHTTPRequestHandler):
    """Knows me/clip at main, refuses the rest as the real one does."""

    def do_HEAD(self):
        self.answer()

    def do_GET(self):
        self.answer()

    def answer(self):
        _, owner, name, _, revision, file = self.path.split("/", 5)
        if (owner, name) == ("me", "gated"):
            return self.refuse(403, "GatedRepo")
        if (owner, name) != ("me", "clip"):
            return self.refuse(401, "RepoNotFound")
        if revision not in {"main", COMMIT}:
            return self.refuse(404, "RevisionNotFound")
        if file != "config.json":
            return self.refuse(404, "EntryNotFound")
        self.send_response(200)
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", '"abc"')
        self.send_header("Content-Length", str(len(CONFIG)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(CONFIG)
        return None

    def refuse(self, status, code):
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


@pytest.fixture
def hub(monkeypatch, tmp_path):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", address)
    monkeypatch.setattr(
        huggingface_hub.constants,
        "HUGGINGFACE_CO_URL_TEMPLATE",
        address + "/{repo_id}/resolve/{revision}/{filename}",
    )
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def find(model, **options):
    return torch_support.find_checkpoint(MetricOptions(model=model, **options), default="me/clip")


def test_a_branch_becomes_the_commit_that_it_stands_for(hub):
    assert find(None).revision == COMMIT
    assert find("me/clip", revision=COMMIT).where() == {
        "pretrained_model_name_or_path": "me/clip",
        "revision": COMMIT,
    }


def test_what_is_in_the_cache_needs_no_connection(hub, monkeypatch):
    find("me/clip")
    hub.shutdown()
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    assert find("me/clip").revision == COMMIT


@pytest.mark.parametrize(
    ("model", "options", "sentence"),
    [
        ("me/nothing", {}, "The model hub has no 'me/nothing'"),
        ("me/gated", {}, "me/gated is a gated model: accept its licence"),
        ("me/clip", {"revision": "v9"}, "me/clip has no revision 'v9'"),
        ("three/part/name", {}, "The model hub has no 'three/part/name'"),
        ("./nowhere", {}, "There is no folder ./nowhere"),
    ],
)
def test_a_model_that_cannot_be_had_is_one_sentence(hub, model, options, sentence):
    with pytest.raises(MetricError) as caught:
        find(model, **options)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_connection_and_no_cache_is_one_sentence(hub, monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(MetricError, match="is not in the local cache and the model hub cannot be"):
        find("me/clip")


def test_a_folder_without_a_config_is_no_model(tmp_path):
    with pytest.raises(MetricError, match=r"holds no config\.json"):
        find(str(tmp_path))


def test_a_folder_is_named_by_its_contents_and_not_by_its_path(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
        (tmp_path / name / ".cache").write_text(name)
    assert folder_digest(tmp_path / "one") == folder_digest(tmp_path / "two")
    (tmp_path / "two" / "config.json").write_text("{ }")
    assert folder_digest(tmp_path / "one") != folder_digest(tmp_path / "two")


def test_a_change_in_the_middle_of_a_large_file_is_seen(tmp_path):
    path = tmp_path / "weights.bin"
    with path.open("wb") as file:
        file.truncate(80 * 2**20)
    before = folder_digest(tmp_path)
    with path.open("r+b") as file:
        file.seek(40 * 2**20)
        file.write(b"x" * 2**21)
    assert folder_digest(tmp_path) != before


def test_weights_are_read_from_one_file_or_from_shards(tmp_path):
    import json

    tensors = {"a": torch.ones(2), "b": torch.zeros(3)}
    single, shards, old = (tmp_path / name for name in ("single", "shards", "old"))
    for folder in (single, shards, old):
        folder.mkdir()
    save_file(tensors, single / "model.safetensors")
    for name, value in tensors.items():
        save_file({name: value}, shards / f"{name}.safetensors")
    places = {name: f"{name}.safetensors" for name in tensors}
    (shards / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    torch.save(tensors, old / "pytorch_model.bin")
    for folder in (single, shards, old):
        assert weight_names(folder) == ["a", "b"]
        assert torch.equal(read_weights(folder, ["b"])["b"], torch.zeros(3))


def test_a_folder_without_weights_is_one_sentence(tmp_path):
    with pytest.raises(MetricError, match="holds no weights"):
        weight_names(tmp_path)


@pytest.mark.parametrize("wanted", ["cuda", "cuda:7", "mars"])
def test_a_device_that_is_not_there_is_one_sentence(wanted):
    if torch.cuda.is_available() and wanted == "cuda":
        pytest.skip("there is a CUDA device here")
    with pytest.raises(MetricError, match="device"):
        torch_support.pick_device(wanted)
