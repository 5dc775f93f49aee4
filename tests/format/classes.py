# SPDX-License-Identifier: MIT
"""Writes tables of transformers' configuration classes for the model_types that frit reads.

    python3 -m venv build/classes && build/classes/bin/pip install transformers==5.24.0
    build/classes/bin/python tests/format/classes.py ../shared/goldens/hf

writes two files, without a path only the first:

    src/format/hf/hf_classes.def     other names and defaults of keys that are mentioned in src/format
    tests/goldens/hf/keys.tsv     for the folders of that path: a change to config.json (a key removed, or under another
                                  name), and a change that means the same to AutoConfig, with every key in its place
"""

import copy
import glob
import json
import logging
import os
import re
import sys
from dataclasses import MISSING, fields

os.environ["TRANSFORMERS_VERBOSITY"] = "critical"
logging.disable(logging.CRITICAL)
from transformers import PreTrainedConfig  # noqa: E402
from transformers.models.auto.configuration_auto import CONFIG_MAPPING  # noqa: E402

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
# Classes that are not in transformers, and the classes from which they derive.
RELATIVES = {
    "llama_bidirec": "llama",
    "mimo": "qwen2",
    "new": "gte",
    "qwen2_vl": "qwen2_vl_text",
    "qwen2_5_vl": "qwen2_5_vl_text",
}
# Defaults of classes that are not in transformers and have no relative there.
OTHERS = {
    "model2vec": {},
    "neobert": {
        "vocab_size": 30522,
        "hidden_size": 768,
        "num_hidden_layers": 28,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
        "max_length": 1024,
        "norm_eps": 1e-06,
        "pad_token_id": 0,
        "rope_theta": 10000.0,
    },
}
# Keys that all classes have, and keys that do not affect the model.
COMMON = {f.name for f in fields(PreTrainedConfig)} - {"tie_word_embeddings"}
UNUSED = {"bos_token_id", "eos_token_id", "model_type", "architectures", "dtype"}
# Names that classes convert in __post_init__ and convert_rope_params_to_dict. None: the class does not accept the name.
TAKEN = {
    "bloom": {"n_embed": "hidden_size"},
    "falcon": {"n_embed": "hidden_size"},
    "gpt_neox": {
        "rope_theta": None,
        "partial_rotary_factor": None,
        "rotary_emb_base": "rope_theta",
        "rotary_pct": "partial_rotary_factor",
    },
    "lfm2": {"block_ff_dim": "intermediate_size", "tie_embedding": "tie_word_embeddings"},
    "lfm2_moe": {"tie_embedding": "tie_word_embeddings"},
    "modernbert": {
        "rope_theta": None,
        "rope_local_base_freq": None,
        "global_rope_theta": "rope_theta",
        "local_rope_theta": "rope_local_base_freq",
    },
    "modernbert-decoder": {
        "rope_theta": None,
        "rope_local_base_freq": None,
        "global_rope_theta": "rope_theta",
        "local_rope_theta": "rope_local_base_freq",
        "sliding_window": None,
    },
    "olmo3": {"rope_local_base_freq": None},
    "nemotron_h": {"mamba_n_groups": "n_groups", "mamba_d_conv": "conv_kernel"},
    # names of the published files, which were written for code beside them
    "nomic_bert": {
        "n_embd": "hidden_size",
        "n_head": "num_attention_heads",
        "n_layer": "num_hidden_layers",
        "n_inner": "intermediate_size",
        "n_positions": "max_position_embeddings",
        "layer_norm_epsilon": "layer_norm_eps",
        "rotary_emb_base": "rope_theta",
    },
    # the key in files of DeepSeek and others; newer classes have another name for it
    "deepseek_v2": {"num_nextn_predict_layers": "num_mtp_layers"},
    "deepseek_v3": {"num_nextn_predict_layers": "num_mtp_layers"},
    "glm4_moe": {"num_nextn_predict_layers": "num_mtp_layers"},
    "deepseek_v32": {"num_nextn_predict_layers": "num_mtp_layers", "num_experts": "n_routed_experts"},
    "glm_moe_dsa": {"num_nextn_predict_layers": "num_mtp_layers", "num_experts": "n_routed_experts"},
    "glm4_moe_lite": {"num_nextn_predict_layers": "num_mtp_layers"},
}
# Defaults that are not fields of a class.
ADDED = {
    "cohere2": {"sliding_window_pattern": 4},
    "embedding_gemma2_text": {"global_head_dim": 512},
    "gemma3_text": {"sliding_window_pattern": 6},
    "gemma4_text": {"global_head_dim": 512},
    "glm4_moe_lite": {"first_k_dense_replace": 1},
    "modernbert": {"global_attn_every_n_layers": 3},
    "modernbert-decoder": {"global_attn_every_n_layers": 3},
    "opt": {"do_layer_norm_before": True, "_remove_final_layer_norm": False},
    "qwen3_5_text": {"full_attention_interval": 4},
    "qwen3_5_moe_text": {"full_attention_interval": 4},
    "qwen3_next": {"full_attention_interval": 4},
    "sarvam_moe": {"partial_rotary_factor": 1.0},
    "t5": {"tie_word_embeddings": True},
}


def class_of(model_type):
    return CONFIG_MAPPING[RELATIVES.get(model_type, model_type)]


def read_sources():
    names = sorted(glob.glob(os.path.join(ROOT, "src/format/hf/**/hf*.[ch]"), recursive=True)) + [os.path.join(ROOT, "src/format/folder.c")]
    names = [name for name in names if "vision" not in name]   # rows of encoders of pictures are in hf_vision_classes.def
    text = "".join(open(name).read() for name in names)
    types = re.findall(r'(?:\.model_type = |^FAMILY\(\w+, )"([^"]+)"', text, re.MULTILINE)
    return sorted(set(types)), set(re.findall(r'"([A-Za-z_0-9]+)"', text))


def rotation_of(model_type, config):
    """Returns the rotation of a class for a configuration without rope_parameters."""
    rope = getattr(config, "rope_parameters", None)
    if not rope:
        return {}
    if "compress" in rope:   # of DeepSeek-V4, whose bases are fields
        return {}
    if "full_attention" in rope:
        is_partial = any(kind.get("partial_rotary_factor", 1.0) != 1.0 for kind in rope.values())
        if rope["full_attention"]["rope_type"] != "default" or is_partial or "sliding_attention" not in rope:
            return {"rope_parameters": rope}
        return {
            "rope_theta": rope["full_attention"]["rope_theta"],
            "rope_local_base_freq": rope["sliding_attention"]["rope_theta"],
        }
    out = {"rope_theta": rope["rope_theta"]}
    if rope.get("partial_rotary_factor", 1.0) != 1.0:
        out["partial_rotary_factor"] = rope["partial_rotary_factor"]
    if rope["rope_type"] != "default":
        own = class_of(model_type)(rope_theta=12345.0).rope_parameters["rope_theta"] != 12345.0
        out["rope_parameters"] = {k: v for k, v in rope.items() if own or k != "rope_theta"}
    return out


def defaults_of(model_type, read):
    if model_type in OTHERS:
        return OTHERS[model_type]
    found = {}
    for field in fields(class_of(model_type)):
        value = None if field.default is MISSING else field.default
        if field.name in COMMON | UNUSED or field.name not in read or value is None or value == "auto":
            continue
        if isinstance(value, tuple):
            continue
        found[field.name] = value
    found.update(rotation_of(model_type, class_of(model_type)()))
    found.update(ADDED.get(model_type, {}))
    return found


def aliases_of(model_type, read):
    if model_type in OTHERS:
        return {}
    cls = class_of(model_type)
    names = {f.name for f in fields(cls)}
    pairs = dict(TAKEN.get(model_type, {}))
    for name, other in cls.attribute_map.items():
        # the name that is not a field is set last, so its value is used
        extra, field = (name, other) if other in names else (other, name)
        if name in names and other in names:
            extra, field = name, other
        if field in read and field in names and extra not in pairs:
            pairs[extra] = field
    return pairs


def wrap(head, value):
    text, lines = json.dumps(value), []
    line = head
    for piece in re.findall(r'(?:[^,"]|"[^"]*")+,? ?', text):
        if len(line) + len(piece.rstrip()) > 118:
            lines.append(line.rstrip())
            line = "    "
        line += piece
    return "\n".join(lines + [line + ")"]) + "\n"


def write_classes(types, read):
    with open(os.path.join(ROOT, "src/format/hf/hf_classes.def"), "w") as out:
        out.write(
            "// SPDX-License-Identifier: MIT\n"
            "// Rows of format/hf/hf_class.c: names and defaults that transformers' configuration classes have for a model_type\n"
            "// beside its config.json. Written by tests/format/classes.py.\n"
            "//\n"
            "//     ALIASES(type, {other name: the name that families read})        the other name is used if both are present\n"
            "//     ALIASES(type, {name: null})                                     the class ignores the name\n"
            "//     DEFAULTS(type, {key: value where it is absent})\n"
            "//     TEXT_MODEL(type of the whole, type of a text_config without one), ONLY_TEXT_MODEL: replaces any type it has\n"
            "// clang-format off\n"
        )
        for model_type in types:
            pairs = aliases_of(model_type, read)
            if pairs:
                out.write(wrap(f"ALIASES({model_type}, ", pairs))
            out.write(wrap(f"DEFAULTS({model_type}, ", defaults_of(model_type, read)))
        for model_type in CONFIG_MAPPING:
            try:
                spec = CONFIG_MAPPING[model_type].sub_configs_defaults.get("text_config")
            except Exception:
                continue
            if spec and spec.model_type in types:
                only = "ONLY_" if issubclass(spec.config_class, PreTrainedConfig) else ""
                out.write(f"{only}TEXT_MODEL({model_type}, {spec.model_type})\n")
        out.write("// clang-format on\n")


def untag(value):
    """Replaces {"__float__": "Infinity"}, the form in files, by the number."""
    if isinstance(value, list):
        return [untag(item) for item in value]
    if isinstance(value, dict):
        return float(value["__float__"]) if "__float__" in value else {k: untag(v) for k, v in value.items()}
    return value


def read(config):
    """Returns the configuration as AutoConfig reads it, or None if AutoConfig refuses it."""
    try:
        return class_of(config["model_type"]).from_dict(untag(config)).to_dict()
    except Exception:
        return None


def plain(value):
    """Converts a value to JSON's types: tuples become lists, and keys texts."""
    return json.loads(json.dumps(value))


def change_to(before, after):
    """Returns the keys in which two configurations differ. "-KEY" means that the key is absent."""
    out = {key: value for key, value in after.items() if key not in before or before[key] != value}
    out.update({"-" + key: 0 for key in before if key not in after})
    return out


def spellings_of(config, read_keys):
    """Yields copies of a configuration with a key removed or set to null."""
    for key in config:
        if key in UNUSED | {"transformers_version", "use_cache"}:
            continue
        yield {k: v for k, v in config.items() if k != key}
        if config[key] is not None and key in read_keys:
            yield {**config, key: None}
        for inner in config[key] if isinstance(config[key], dict) else ():
            less = copy.deepcopy(config)
            del less[key][inner]
            yield less
            for innermost in config[key][inner] if isinstance(config[key][inner], dict) else ():
                less = copy.deepcopy(config)
                del less[key][inner][innermost]
                yield less
    pairs = aliases_of(config["model_type"], read_keys)
    turns = {"rope_theta": 5000.0, "rope_local_base_freq": 3000.0, "partial_rotary_factor": 0.5}
    less = {k: v for k, v in config.items() if k != "rope_parameters"}
    for name, key in [(key, key) for key in turns] + list(pairs.items()):
        if key in turns and less != config:
            yield {**less, name: turns[key]}
    for name, key in pairs.items():
        if key is None:
            continue
        if name in config and key not in config:
            yield {**{k: v for k, v in config.items() if k != name}, key: config[name]}
        if key in config and name not in config:
            yield {**{k: v for k, v in config.items() if k != key}, name: config[key]}
            if isinstance(config[key], int) and not isinstance(config[key], bool):
                yield {**config, name: 2 * config[key]}


def write_keys(folders, read_keys):
    skipped = 0
    with open(os.path.join(ROOT, "tests/goldens/hf/keys.tsv"), "w") as out:
        for path in sorted(glob.glob(os.path.join(folders, "*", "config.json"))):
            config = json.load(open(path))
            whole = read(config)
            for other in spellings_of(config, read_keys):
                filled = read(other)
                if filled is None:
                    skipped += 1
                    continue
                changes = change_to(plain(whole), plain(filled))
                meant = {k: v for k, v in {**config, **changes}.items() if k[0] != "-" and "-" + k not in changes}
                row = [change_to(config, other), change_to(config, plain(meant))]
                name = os.path.basename(os.path.dirname(path))
                out.write("\t".join([name] + [json.dumps(change, separators=(",", ":")) for change in row]) + "\n")
    print(skipped, "configurations are refused by their classes", file=sys.stderr)


if __name__ == "__main__":
    TYPES, READ = read_sources()
    write_classes(TYPES, READ)
    if len(sys.argv) > 1:
        write_keys(sys.argv[1], READ)
