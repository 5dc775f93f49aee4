# SPDX-License-Identifier: MIT
"""Pictures in chats: every form of a picture, its errors, and its place in a conversation."""

from __future__ import annotations

import asyncio
import base64
import io
import subprocess
from pathlib import Path
from typing import Any, Iterator

import numpy
import PIL.Image
import pytest

import frit
from conftest import ROOT

MEDIA = ROOT.parent / "shared" / "goldens" / "media"
PHOTO = MEDIA / "images" / "lossless.webp"   # decoded to the bit by any library

TEMPLATE = """{%- for message in messages -%}<|im_start|>{{ message.role }}
{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}
{%- if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ part.text }}{% endif %}
{%- endfor %}{% endif %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pictures") / "template.jinja"
    path.write_text(TEMPLATE)
    return path


@pytest.fixture(scope="module")
def seeing(template: Path) -> Iterator[frit.Engine]:
    if not MEDIA.exists():
        pytest.skip("../shared has no models that read pictures")
    with frit.Engine(frit.Model(MEDIA / "qwen2_5_vl", chat_template=template), n_ctx=512, n_sessions=4) as engine:
        yield engine


def ask(engine: frit.Engine, part: dict[str, Any], **options: Any) -> frit.Answer[None]:
    content = [part, {"type": "text", "text": "What is this?"}]
    return engine.chat([{"role": "user", "content": content}], max_tokens=6, temperature=0, **options)


def test_every_form_of_a_picture_gives_the_commands_answer(seeing: frit.Engine, template: Path, command: str) -> None:
    made = subprocess.run([command, "run", "-q", "-m", MEDIA / "qwen2_5_vl", "--chat-template", template, "--temp", "0",
                           "-n", "6", "-c", "512", "--image", PHOTO, "-p", "What is this?"],
                          check=True, capture_output=True, stdin=subprocess.DEVNULL)
    expected = made.stdout.decode("utf-8", "replace").rstrip("\n")
    data = PHOTO.read_bytes()
    uri = "data:image/webp;base64," + base64.b64encode(data).decode()
    opened = PIL.Image.open(PHOTO)
    parts: list[dict[str, Any]] = [
        {"type": "image", "image": PHOTO}, {"type": "image", "path": str(PHOTO)}, {"type": "image", "image": data},
        {"type": "image", "image": bytearray(data)}, {"type": "image", "url": uri},
        {"type": "image_url", "image_url": {"url": uri}}, {"type": "input_image", "image_url": uri},
        {"type": "image", "image": opened}, {"type": "image", "image": numpy.asarray(opened.convert("RGB"))},
        {"type": "image", "image": frit.Image(PHOTO)},
    ]
    for part in parts:
        answer = ask(seeing, part)
        assert answer.text == expected
        assert answer.usage.prompt > 20


def test_pixels_are_those_of_the_file(seeing: frit.Engine) -> None:
    image = frit.Image(PHOTO)
    pixels = numpy.asarray(image)
    opened = PIL.Image.open(PHOTO)
    assert (image.width, image.height) == opened.size and repr(image).startswith("<frit.Image of ")
    assert (pixels == numpy.asarray(opened.convert("RGB"))).all()
    assert not pixels.flags.writeable
    del image   # the view keeps the pixels
    assert (pixels == numpy.asarray(opened.convert("RGB"))).all()


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "LA", "P", "1", "CMYK"])
def test_pil_images_of_every_mode(mode: str) -> None:
    drawn = PIL.Image.effect_noise((17, 9), 90).convert("RGBA")
    drawn.putalpha(PIL.Image.linear_gradient("L").resize((17, 9)))
    picture = drawn.convert(mode)
    if mode in ("RGB", "RGBA", "L", "LA", "P", "1"):   # as the file that PIL writes of it
        file = io.BytesIO()
        picture.save(file, "PNG")
        assert (numpy.asarray(frit.Image(file.getvalue())) == numpy.asarray(frit.Image(picture))).all()
    assert numpy.asarray(frit.Image(picture)).shape == (9, 17, 3)


def test_orientation_of_pil_images() -> None:
    picture = PIL.Image.new("RGB", (4, 2), "red")
    picture.getexif()[0x0112] = 6   # turned
    assert (frit.Image(picture).width, frit.Image(picture).height) == (2, 4)


def test_pictures_stay_in_the_conversation(seeing: frit.Engine) -> None:
    picture = frit.Image(PHOTO)
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "image", "image": picture}, {"type": "text", "text": "What is this?"}]}]
    first = seeing.chat(messages, max_tokens=6, temperature=0)
    messages += [first.message(), {"role": "user", "content": "And now?"}]
    second = seeing.chat(messages, max_tokens=6, temperature=0)
    assert second.usage.cached >= first.usage.prompt - 32   # a page of the cache
    many = [seeing.chat_stream(messages[:1], max_tokens=6, temperature=0) for _ in range(4)]
    assert [stream.text() for stream in many] == [first.text] * 4
    assert seeing.chat([{"role": "user", "content": "Hello"}], max_tokens=2).finish_reason == "length"


def test_asyncio_and_fewer_tokens(seeing: frit.Engine) -> None:
    part = {"type": "image", "image": PHOTO}
    message = {"role": "user", "content": [part, {"type": "text", "text": "What is this?"}]}
    many = asyncio.run(seeing.achat([message], max_tokens=6, temperature=0))
    few = ask(seeing, part, image_tokens=4)
    assert many.text == ask(seeing, part).text
    assert few.usage.prompt < many.usage.prompt


def test_detail_and_salt(seeing: frit.Engine) -> None:
    uri = "data:image/webp;base64," + base64.b64encode(PHOTO.read_bytes()).decode()
    low, high = ({"type": "image_url", "image_url": {"url": uri, "detail": detail}} for detail in ("low", "high"))
    assert ask(seeing, low).text == ask(seeing, high).text   # the picture has fewer than 256 tokens
    assert ask(seeing, low, salt=b"a\0b").text == ask(seeing, high, salt=b"another").text
    large = numpy.zeros((512, 512, 3), "u1")
    limits = frit.image.LOW_TOKENS
    few = ask(seeing, {"type": "image", "image": large, "detail": "low"})
    assert few.usage.prompt <= limits + 40


def test_wrong_pictures_are_named(seeing: frit.Engine, engine: frit.Engine) -> None:
    cases: list[tuple[Any, type[Exception], str]] = [
        ({"image": "/none.png"}, FileNotFoundError, "/none.png"),
        ({"image": b"not a picture"}, ValueError, "13 bytes are no picture"),
        ({"image": PHOTO.read_bytes()[:200]}, ValueError, ""),
        ({"image": "https://example.org/a.png"}, ValueError, "frit fetches no pictures"),
        ({"image": "data:image/png,abc"}, ValueError, "expected data:image/png;base64"),
        ({"image": "data:image/png;base64,?"}, ValueError, "not base64"),
        ({"image": numpy.zeros((4, 4), "u1")}, TypeError, r"an array \[4, 4\]"),
        ({"image": numpy.zeros((4, 4, 3), "f4")}, TypeError, "format 'f'"),
        ({"image": PIL.Image.new("I;16", (4, 4))}, NotImplementedError, "mode 'I;16'"),
        ({"image": 7}, TypeError, "found 7"),
        ({}, ValueError, "expected one of image, path, url"),
        ({"image": PHOTO, "url": "x"}, ValueError, "expected one of image, path, url"),
        ({"image_url": {"detail": "low"}}, ValueError, "expected a dict with url"),
        ({"image": PHOTO, "detail": "tiny"}, ValueError, "the detail is 'tiny', expected low, high or auto"),
        ({"image": PHOTO, "max_pixels": 4096}, ValueError, "the key 'max_pixels' of a picture is unknown"),
    ]
    for part, kind, sentence in cases:
        with pytest.raises(kind, match=r"messages\[0\]\.content\[0\].*" + sentence):
            ask(seeing, {"type": "image", **part})
    with pytest.raises(NotImplementedError, match="pictures"):
        ask(engine, {"type": "image", "image": PHOTO})
    with pytest.raises(ValueError, match="image_tokens: found 0"):
        ask(seeing, {"type": "image", "image": PHOTO}, image_tokens=0)
    assert ask(seeing, {"type": "image", "image": PHOTO}).text   # the engine goes on


def test_a_picture_belongs_to_the_user_of_the_engine(template: Path) -> None:
    """A stream that is dropped before its picture is encoded, and an engine that closes, free all."""
    if not MEDIA.exists():
        pytest.skip("../shared has no models that read pictures")
    engine = frit.Engine(frit.Model(MEDIA / "qwen2_5_vl", chat_template=template), n_ctx=512)
    message = {"role": "user", "content": [{"type": "image", "image": PHOTO}, {"type": "text", "text": "What?"}]}
    for _ in range(20):
        engine.chat_stream([message], max_tokens=20).close()
    stream = engine.chat_stream([message], max_tokens=20)
    next(stream)
    engine.close()
    with pytest.raises(frit.InvalidError, match="closed"):
        for _ in stream:
            pass
