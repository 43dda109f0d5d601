"""Small releases in the forms that FlashInfer's source has had: written for these tests, never installed."""

from __future__ import annotations

from collections.abc import Mapping

from tooling.capabilities.source import Source

KEY_MAKER = """
    @classmethod
    def _get_cache_key(cls, custom_op, runner, shapes, config, extras=()):
        return (custom_op, runner.__class__.__name__, hash(runner), cls._nearest(shapes, config), extras)
"""
KEY_CLASS_MAKER = """
    @classmethod
    def _get_cache_key(cls, custom_op, runner, shapes, config, extras=()):
        return Key(op=custom_op, runner=runner.__class__.__name__, ident=hash(runner), shape=shapes, extras=extras)
"""
KEY_CLASS = """
class Key:
    op: str
    runner: str
    ident: int
    shape: tuple
    extras: tuple

    @property
    def fields(self):
        return (self.op, self.runner, self.shape{extras})

    @property
    def file_key(self):
        return str(self.fields)
"""
SEARCH = """
    def search_cache(self, custom_op, runners, shapes, config, inputs=None):
        for r in runners:
            extras = r.get_cache_key_extras(inputs) if inputs is not None else ()
            key = AutoTuner._get_cache_key(custom_op, r, shapes, config, extras)

    def choose_one(self, custom_op, runners, config, inputs):
        return self.search_cache(custom_op, runners, inputs, config)

    def load_configs(self, path):
        return True
"""
HEAD = """
import os

def _collect_metadata():
    meta = {}
    meta["flashinfer_version"] = "x"
    meta["gpu"] = "y"
    return meta

def autotune(tune_mode=True, cache=None, skip_ops=None):
    yield
"""
SAVES = {
    "unpacked, extras left out": """
            op, name, _hash, shape, _extras = cache_key
            file_key = str((op, name, shape))
            configs[file_key] = 1
""",
    "unpacked, extras kept": """
            op, name, _hash, shape, _extras = cache_key
            file_key = str((op, name, shape, _extras))
            configs[file_key] = 1
""",
    "indexed, extras left out": """
            configs[str((cache_key[0], cache_key[1], cache_key[3]))] = 1
""",
    "indexed, extras kept": """
            configs[str((cache_key[0], cache_key[1], cache_key[3], cache_key[4]))] = 1
""",
    "sliced, extras kept": """
            configs[str(cache_key[:2] + cache_key[3:])] = 1
""",
    "sliced, extras left out": """
            configs[str(cache_key[:2] + cache_key[3:4])] = 1
""",
    "helper of the class, extras kept": """
            file_key = AutoTuner._get_file_key(cache_key)
            configs[file_key] = 1

    @staticmethod
    def _get_file_key(key):
        if key[4] == ():
            return AutoTuner._legacy(key)
        return str((key[0], key[1], key[3], key[4]))

    @staticmethod
    def _legacy(key):
        return str((key[0], key[1], key[3]))
""",
    "function of the module, extras left out": """
            configs[spell(cache_key)] = 1

def spell(key):
    return repr((key[0], key[1], key[3]))
""",
    "the whole key": """
            configs[str(cache_key)] = 1
""",
    "formatted, extras kept": """
            op, name, _hash, shape, extras = cache_key
            configs[f"{op}/{name}/{shape}/{extras}"] = 1
""",
}
CARRIES = {name: "kept" in name or name == "the whole key" for name in SAVES}


def tuner(save: str, *, key_class: str | None = None) -> str:
    """A tuner's module whose save_configs writes keys in that form."""
    maker = KEY_MAKER if key_class is None else KEY_CLASS_MAKER
    body = f"""
    def save_configs(self, path):
        configs = {{}}
        for file_key, value in self._file_configs.items():
            configs[file_key] = value
        for cache_key, cache_value in self.profiling_cache.items():{save}
"""
    update = "" if "\n\n" in save else "        disk_configs.update(configs)\n"
    return f"{HEAD}{key_class or ''}\nclass AutoTuner:{maker}{SEARCH}{body}{update}"


def release(texts: Mapping[str, str] | None = None, **more: str) -> dict[str, str]:
    """A release's members by path; `a/b` is `flashinfer/a/b.py`."""
    members = {"flashinfer/__init__.py": "", "flashinfer/jit/env.py": "import os\n"}
    members |= {f"flashinfer/{name}.py": text for name, text in {**(texts or {}), **more}.items()}
    return members


def source(members: Mapping[str, str]) -> Source:
    return Source(names=frozenset(members), read=lambda name: members[name].encode())


METADATA = "Metadata-Version: 2.1\nName: flashinfer-python\nVersion: {version}\nRequires-Dist: torch\n\n"


def whole_release(version: str = "9.1.0", *, save: str = SAVES["unpacked, extras kept"]) -> dict[str, str]:
    """A release in which every fact can be told."""
    gemm = """
class LayoutRunner(TunableRunner):
    def __init__(self, use_8x4_sf_layout):
        self.layout = use_8x4_sf_layout
        self._use_8x4_sf_layout = use_8x4_sf_layout

    def get_cache_key_extras(self, inputs):
        return (self._use_8x4_sf_layout,)

def mm(a):
    return AutoTuner.get().choose_one("mm", [LayoutRunner(True)], None, [a])
"""
    return {
        **release(autotuner=tuner(save), gemm=gemm),
        f"flashinfer_python-{version}.dist-info/METADATA": METADATA.format(version=version),
    }
