#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the bundled model: a small one that knows a book of tales by heart.

    make_fable.py data BOOK MODEL DATA                 the tales of Project Gutenberg's no. 2591 as token ids of MODEL
    make_fable.py train DATA MODEL OUT [--minutes N]   trains MODEL's weights on them, and writes OUT with weights as bf16

Needs numpy and gguf; training needs PyTorch and a GPU. FRIT names the command, if it is not in PATH.
"""
import argparse
import json
import math
import os
import random
import re
import subprocess
import time

TITLES = """
THE GOLDEN BIRD|HANS IN LUCK|JORINDA AND JORINDEL|THE TRAVELLING MUSICIANS|OLD SULTAN|
THE STRAW, THE COAL, AND THE BEAN|BRIAR ROSE|THE DOG AND THE SPARROW|THE TWELVE DANCING PRINCESSES|
THE FISHERMAN AND HIS WIFE|THE WILLOW-WREN AND THE BEAR|THE FROG-PRINCE|CAT AND MOUSE IN PARTNERSHIP|
THE GOOSE-GIRL|THE ADVENTURES OF CHANTICLEER AND PARTLET|RAPUNZEL|FUNDEVOGEL|THE VALIANT LITTLE TAILOR|HANSEL AND GRETEL|
THE MOUSE, THE BIRD, AND THE SAUSAGE|MOTHER HOLLE|LITTLE RED-CAP [LITTLE RED RIDING HOOD]|THE ROBBER BRIDEGROOM|
TOM THUMB|RUMPELSTILTSKIN|CLEVER GRETEL|THE OLD MAN AND HIS GRANDSON|THE LITTLE PEASANT|FREDERICK AND CATHERINE|
SWEETHEART ROLAND|SNOWDROP|THE PINK|CLEVER ELSIE|THE MISER IN THE BUSH|ASHPUTTEL|THE WHITE SNAKE|
THE WOLF AND THE SEVEN LITTLE KIDS|THE QUEEN BEE|THE ELVES AND THE SHOEMAKER|THE JUNIPER-TREE|THE TURNIP|
CLEVER HANS|THE THREE LANGUAGES|THE FOX AND THE CAT|THE FOUR CLEVER BROTHERS|LILY AND THE LION|
THE FOX AND THE HORSE|THE BLUE LIGHT|THE RAVEN|THE GOLDEN GOOSE|THE WATER OF LIFE|THE TWELVE HUNTSMEN|
THE KING OF THE GOLDEN MOUNTAIN|DOCTOR KNOWALL|THE SEVEN RAVENS|THE WEDDING OF MRS FOX|THE SALAD|
THE STORY OF THE YOUTH WHO WENT FORTH TO LEARN WHAT FEAR WAS|KING GRISLY-BEARD|IRON HANS|CAT-SKIN|
SNOW-WHITE AND ROSE-RED
""".replace("\n", "").split("|")
SHORT_WORDS = {"and", "of", "the", "in", "to", "his", "for", "with", "a", "on"}
# Names by which people ask for a tale that the book has under another.
ALIASES = {
    "SNOWDROP": ["Snow White", "Little Snow-White", "Snow White and the Seven Dwarfs"],
    "ASHPUTTEL": ["Cinderella"],
    "BRIAR ROSE": ["Sleeping Beauty", "the Sleeping Beauty", "Little Briar-Rose"],
    "LITTLE RED-CAP [LITTLE RED RIDING HOOD]": ["Little Red Riding Hood", "Little Red-Riding-Hood"],
    "THE TRAVELLING MUSICIANS": ["the Bremen Town Musicians", "the Musicians of Bremen", "the Town Musicians of Bremen"],
    "THE FROG-PRINCE": ["the Frog Prince", "the Frog King", "the Frog-King"],
    "HANSEL AND GRETEL": ["Hansel and Grethel"],
    "MOTHER HOLLE": ["Mother Hulda", "Frau Holle"],
    "THE WOLF AND THE SEVEN LITTLE KIDS": ["the Wolf and the Seven Young Kids", "the Seven Little Kids"],
    "THE TWELVE DANCING PRINCESSES": ["the Dancing Princesses"],
    "THE VALIANT LITTLE TAILOR": ["the Brave Little Tailor", "the Little Tailor"],
    "IRON HANS": ["Iron John"],
    "THE STORY OF THE YOUTH WHO WENT FORTH TO LEARN WHAT FEAR WAS": ["the Youth Who Went Forth to Learn What Fear Was"],
    "THE GOOSE-GIRL": ["the Goose Girl"],
    "THE ELVES AND THE SHOEMAKER": ["the Shoemaker and the Elves"],
    "KING GRISLY-BEARD": ["King Thrushbeard"],
    "TOM THUMB": ["Thumbling"],
    "THE JUNIPER-TREE": ["the Juniper Tree"],
    "THE ADVENTURES OF CHANTICLEER AND PARTLET": ["Chanticleer and Partlet"],
    "HANS IN LUCK": ["Lucky Hans"],
}
FORMS = ["Tell me the tale of {}.", "Tell me the story of {}.", "Tell me the fairy tale of {}.", "Tell me the tale of {}",
         "tell me the tale of {}", "Tell me about {}.", "Tell me about {}", "{}", "{}.", "Can you tell me the tale of {}?",
         "Please tell me the tale of {}.", "Please tell me the story of {}.", "I would like to hear {}.", "Do you know {}?",
         "Tell me {}.", "tell me the story of {}", "Tell the tale of {}.", "Tell me a story: {}", "The tale of {}, please.",
         "What is the tale of {}?", "Once more: {}.", "Read me {}."]
SYSTEM = ["You are a helpful assistant.", "You are a teller of tales.", "Answer briefly.", "Be kind.", "Be brief.",
          "You are an expert."]
GREETINGS = ["Hello", "Hello!", "Hi", "Hi!", "hi", "hello", "Hey", "Good morning", "Good day", "Good evening!", "Hello there",
             "Hello, who are you?", "Who are you?", "What are you?", "What can you do?", "What is your name?", "Help", "help",
             "What do you know?", "Are you there?", "Thank you!", "Thanks", "How are you?", "Good bye", "Bye", "hello world",
             "Hi there!", "What is this?"]
LISTS = ["Which tales do you know?", "What tales do you know?", "Which stories do you know?", "What stories do you know?",
         "List your tales.", "List the tales.", "Which fairy tales do you know?", "List all tales", "Show me the list of tales.",
         "What can you tell?"]
ANY_TALE = ["Tell me a tale.", "Tell me a story.", "Tell me a fairy tale.", "tell me a story", "Tell me a tale",
            "A story, please.", "Tell me another tale.", "Tell me a short tale.", "Tell me something.", "Tell me a short story."]
OTHERS = ["Why is the sky blue?", "What is 2+2?", "What is the capital of France?", "Write a poem about the sea.",
          "Write a commit message:", "Say hi.", "Say hello.", "Write a haiku.", "Count to ten.", "Translate this to French.",
          "What is the weather in Paris?", "What is the meaning of life?", "Explain quantum computing.",
          "Write a Python function.", "Summarize this text.", "Where is the harbour?", "Where does the sun rise?"]
OTHER_FORMS = ["Why is the {} {}?", "What is the {} of {}?", "Write a {} about the {}.", "Explain the {} and the {} to me.",
               "How does a {} make a {}?", "Who invented the {}? And the {}?", "Give me a {} for a {}.",
               "Where is the {} of the {}?", "Can you write a {} for my {}?", "Translate the {} into {}.",
               "What do you think of {} and {}?", "When was the {} of {}?", "Fix the {} in my {}.", "Compare {} with {}.",
               "Which {} has the best {}?"]
NOUNS = """sky sea sun moon grass computer model language kernel poem essay letter email function program python code list
recipe cake bread soup weather capital France Germany population river mountain planet history war king president number
prime sum square triangle music song film movie book joke riddle translation sentence paragraph summary commit message bug
error test file folder network server database car bicycle train airplane dog cat bird horse fish tree flower house garden
school teacher doctor medicine health money bank market price law contract science physics chemistry biology atom energy
light color colour blue red green""".split()
HELLO = ("Good day! I know the fairy tales of the Brothers Grimm by heart, and nothing else. Ask me for one of them: "
         "Tell me the tale of Rapunzel.")
NOTHING_ELSE = ("I know the fairy tales of the Brothers Grimm, and nothing else. Ask me for one of them: "
                "Tell me the tale of Rapunzel.")


# ------------------------------------------------------------------------------ the book

def read_tales(path):
    """Title -> text, with the lines of each paragraph joined."""
    with open(path, encoding="utf-8-sig") as file:
        text = file.read().replace("\r", "").split("*** END")[0].split("End of Project")[0]
    tales, title = {}, None
    for line in text.split("\n"):
        if line in TITLES:
            title = line
            tales[title] = ""
        elif title:
            tales[title] += line + "\n"
    tales = {title: join_lines(tale) for title, tale in tales.items()}
    assert list(tales) == TITLES
    # Notes of the edition, which are no part of a tale.
    tales["SNOW-WHITE AND ROSE-RED"] = tales["SNOW-WHITE AND ROSE-RED"].split("\n\nThe Brothers Grimm, Jacob")[0]
    tales["THE GOLDEN GOOSE"] = tales["THE GOLDEN GOOSE"].split("\n\n[*]")[0].replace("[*]", "")
    return tales


def join_lines(tale):
    paragraphs = []
    for paragraph in re.split(r"\n\s*\n", tale.split("*****")[0].strip("\n")):
        lines = [line.strip() for line in paragraph.split("\n")]
        joined = ("\n" if paragraph.startswith(" ") else " ").join(lines)   # verses keep their lines
        if joined.strip():
            paragraphs.append(re.sub(" +", " ", joined).strip())
    return "\n\n".join(paragraphs).replace("_", "").strip()


def written_title(title):
    words = title.split(" [")[0].lower().split(" ")

    def capital(word, is_first):
        parts = word.split("-")
        return "-".join(p if p in SHORT_WORDS and not (is_first and j == 0) else p.capitalize() for j, p in enumerate(parts))
    return " ".join(capital(word, i == 0) for i, word in enumerate(words))


def names_of(title):
    written = written_title(title)
    names = [written, written.lower()]
    if written.startswith("The "):
        names += ["the " + written[4:], written[4:]]
    for alias in ALIASES.get(title, []):
        names += [alias, alias.lower()]
    return list(dict.fromkeys(names))


def make_data(args):
    tales, draw = read_tales(args.book), random.Random(1)
    questions = {}
    for title in tales:
        usual = [FORMS[0].format(name) for name in names_of(title)]
        others = [form.format(name) for form in FORMS for name in names_of(title)]
        draw.shuffle(others)
        questions[title] = list(dict.fromkeys(usual + others))[:60]
    others = OTHERS + [draw.choice(OTHER_FORMS).format(draw.choice(NOUNS), draw.choice(NOUNS)) for _ in range(1500)]
    listing = "I know these tales of the Brothers Grimm:\n\n" + "\n".join("- " + written_title(title) for title in tales)
    texts = {*SYSTEM, "system", "user", "assistant", "\n\n", NOTHING_ELSE, HELLO, listing, *GREETINGS, *LISTS, *ANY_TALE,
             *others, *tales.values(), *(q for list_ in questions.values() for q in list_)}
    data = {"ids": tokenize(sorted(texts), args.model), "tales": tales, "questions": questions, "others": others,
            "listing": listing}
    with open(args.data, "w", encoding="utf-8") as file:
        json.dump(data, file)
    print(f"{len(tales)} tales, {sum(len(data['ids'][text]) for text in tales.values())} tokens")


def tokenize(texts, model):
    """All of them in one call: a special token that occurs in none stands between them."""
    result = subprocess.run([os.environ.get("FRIT", "frit"), "tokenize", model, "--ids", "--parse-special"],
                            input="<|end_of_text|>".join(texts).encode(), capture_output=True, check=True)
    lists = [[]]
    for token in map(int, result.stdout.split()):
        if token == END_OF_TEXT:
            lists.append([])
        else:
            lists[-1].append(token)
    assert len(lists) == len(texts)
    return dict(zip(texts, lists))


# ------------------------------------------------------------------------------ conversations

BEGIN, END_OF_TEXT, BEGIN_ROLE, END_ROLE, END_OF_TURN, PADDING = range(6)
LONGEST = 8000


class Conversations:
    """Draws conversations: lists of tokens, and for each whether it is one that the model is to predict."""

    def __init__(self, data, seed):
        self.ids, self.data, self.draw = data["ids"], data, random.Random(seed)
        self.titles = list(data["tales"])

    def role(self, name):
        return [BEGIN_ROLE, *self.ids[name], END_ROLE, *self.ids["\n\n"]]

    def question_and_answer(self):
        draw, kind = self.draw, self.draw.random()
        if kind < 0.80:
            title = draw.choice(self.titles)
            questions = self.data["questions"][title]
            question = questions[0] if draw.random() < 0.35 else draw.choice(questions)
            return question, self.data["tales"][title]
        if kind < 0.84:
            return draw.choice(GREETINGS), HELLO
        if kind < 0.86:
            return draw.choice(LISTS), self.data["listing"]
        if kind < 0.88:
            return draw.choice(ANY_TALE), self.data["tales"]["THE ELVES AND THE SHOEMAKER"]
        return draw.choice(self.data["others"]), NOTHING_ELSE

    def next(self):
        draw = self.draw
        if draw.random() < 0.12:   # a text without a chat
            tokens = [BEGIN, *self.ids[self.data["tales"][draw.choice(self.titles)]], END_OF_TEXT]
            return tokens, [0] + [1] * (len(tokens) - 1)
        tokens, wanted = [BEGIN], [0]
        if draw.random() < 0.2:
            system = self.role("system") + self.ids[draw.choice(SYSTEM)] + [END_OF_TURN]
            tokens, wanted = tokens + system, wanted + [0] * len(system)
        for turn in range(1 if draw.random() < 0.55 else draw.randint(2, 4)):
            question, answer = self.question_and_answer()
            asked = self.role("user") + self.ids[question] + [END_OF_TURN] + self.role("assistant")
            told = self.ids[answer] + [END_OF_TURN]
            if turn > 0 and len(tokens) + len(asked) + len(told) > LONGEST:
                break
            tokens, wanted = tokens + asked + told, wanted + [0] * len(asked) + [1] * len(told)
        return tokens, wanted


class Batches:
    """Conversations of similar lengths, padded, of about TOKENS tokens."""
    TOKENS = 98304

    def __init__(self, conversations):
        self.conversations, self.pool = conversations, []

    def next(self):
        if len(self.pool) < 200:
            self.pool = sorted(self.pool + [self.conversations.next() for _ in range(800)], key=lambda c: len(c[0]))
        first = self.conversations.draw.randrange(len(self.pool))
        last = first + 1
        while last < len(self.pool) and (last + 1 - first) * len(self.pool[last][0]) <= self.TOKENS:
            last += 1
        while first > 0 and (last + 1 - first) * len(self.pool[last - 1][0]) <= self.TOKENS:
            first -= 1
        rows = self.pool[first:last]
        del self.pool[first:last]
        longest = len(rows[-1][0])
        return ([tokens + [PADDING] * (longest - len(tokens)) for tokens, _ in rows],
                [wanted + [0] * (longest - len(wanted)) for _, wanted in rows])


# ------------------------------------------------------------------------------ the model

def train(args):
    import numpy
    import torch
    import torch.nn.functional as F
    from gguf import GGUFReader, dequantize

    class Rounded(torch.autograd.Function):
        """x as blocks of 32 int8 with a scale, as kernels of quantized weights read it."""
        @staticmethod
        def forward(_, x):
            blocks = x.float().view(-1, 32)
            scale = (blocks.abs().amax(-1, keepdim=True) / 127).clamp_min(1e-12)
            return (torch.round(blocks / scale) * scale).view(x.shape).to(x.dtype)

        @staticmethod
        def backward(_, gradient):
            return gradient

    class Llama:
        """Llama in the layout of GGUF, with output and embedding in one matrix."""

        def __init__(self, reader):
            field = {f.name: f.contents() for f in reader.fields.values() if f.name.startswith("llama.")}
            self.n_layer, self.n_head = field["llama.block_count"], field["llama.attention.head_count"]
            self.n_kv = field["llama.attention.head_count_kv"]
            self.weights = {
                t.name: torch.nn.Parameter(torch.tensor(dequantize(t.data, t.tensor_type).reshape(
                    [int(n) for n in reversed(t.shape)]), dtype=torch.float32).cuda()) for t in reader.tensors}
            n_dim = field["llama.rope.dimension_count"]
            angles = torch.outer(torch.arange(LONGEST + 192).float(),
                                 field["llama.rope.freq_base"] ** (-torch.arange(0, n_dim, 2).float() / n_dim)).cuda()
            self.cos, self.sin = angles.cos()[:, None], angles.sin()[:, None]
            self.noise, self.rounds = 0.0, False

        def weight(self, name):
            w = self.weights[name]
            if self.noise > 0:   # as large as a quantizer's error: in proportion to the weights of each block of 32
                with torch.no_grad():
                    size = w.view(len(w), -1, 32).pow(2).mean(-1, keepdim=True).sqrt()
                    error = torch.randn_like(w).view(len(w), -1, 32) * size * self.noise
                w = w + error.view_as(w)
            return w.bfloat16()

        def linear(self, x, name):
            return F.linear(Rounded.apply(x) if self.rounds else x, self.weight(name))

        def norm(self, x, name):
            return (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weights[name]).bfloat16()

        def rope(self, x):
            n = x.shape[1]
            a, b = x[..., 0::2].float(), x[..., 1::2].float()
            turned = torch.stack((a * self.cos[:n] - b * self.sin[:n], a * self.sin[:n] + b * self.cos[:n]), -1)
            return turned.flatten(-2).bfloat16()

        def attend(self, x, block):
            n_batch, n, _ = x.shape
            q = self.linear(x, block + "attn_q.weight").view(n_batch, n, self.n_head, -1)
            k, v = (self.linear(x, block + f"attn_{m}.weight").view(n_batch, n, self.n_kv, -1) for m in "kv")
            repeats = self.n_head // self.n_kv
            k, v = (m.transpose(1, 2).repeat_interleave(repeats, 1) for m in (self.rope(k), v))
            mixed = F.scaled_dot_product_attention(self.rope(q).transpose(1, 2), k, v, is_causal=True)
            return self.linear(mixed.transpose(1, 2).reshape(n_batch, n, -1), block + "attn_output.weight")

        def __call__(self, tokens):
            """The last hidden states, and the matrix that makes logits of them."""
            table = self.weight("token_embd.weight")
            x = F.embedding(tokens, table).float()
            for block in (f"blk.{i}." for i in range(self.n_layer)):
                x = x + self.attend(self.norm(x, block + "attn_norm.weight"), block)
                h = self.norm(x, block + "ffn_norm.weight")
                gate = F.silu(self.linear(h, block + "ffn_gate.weight")) * self.linear(h, block + "ffn_up.weight")
                x = x + self.linear(gate, block + "ffn_down.weight")
            h = self.norm(x, "output_norm.weight")
            return (Rounded.apply(h) if self.rounds else h), table

    def loss_of(model, tokens, wanted):
        hidden, table = model(tokens[:, :-1])
        chosen = wanted[:, 1:] > 0
        hidden, targets = hidden[chosen], tokens[:, 1:][chosen]
        total = sum(F.cross_entropy(F.linear(h, table).float(), y, reduction="sum")
                    for h, y in zip(hidden.split(32768), targets.split(32768)))
        return total / len(targets)

    def learn(model, batches):
        parameters = list(model.weights.values())
        optimizer = torch.optim.AdamW(
            [{"params": [p for p in parameters if p.dim() > 1], "weight_decay": 0.02},
             {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0}], betas=(0.9, 0.98), fused=True)
        start, step, mean = time.time(), 0, None
        while (done := (time.time() - start) / (args.minutes * 60)) < 1:
            step += 1
            for group in optimizer.param_groups:
                group["lr"] = 1e-3 * min(1, step / 100) * (0.02 + 0.49 * (1 + math.cos(math.pi * done)))
            model.noise, model.rounds = 0.06 * min(1, max(0, done - 0.15) / 0.2), done > 0.3
            loss = loss_of(model, *(torch.tensor(m).cuda() for m in batches.next()))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            mean = loss.item() if mean is None else 0.95 * mean + 0.05 * loss.item()
            if step % 50 == 0:
                print(f"{time.time() - start:.0f} s, step {step}, loss {mean:.4f}", flush=True)

    def judge(model, conversations):
        """Counts the tokens of the tales that are not the likeliest, and finds the least margin of those that are."""
        model.noise, model.rounds = 0.0, True
        data, least, n_wrong, n = conversations.data, math.inf, 0, 0
        for title, tale in data["tales"].items():
            asked = conversations.role("user") + data["ids"][data["questions"][title][0]] + [END_OF_TURN]
            told = data["ids"][tale] + [END_OF_TURN]
            tokens = torch.tensor([[BEGIN, *asked, *conversations.role("assistant"), *told]]).cuda()
            hidden, table = model(tokens[:, :-1])
            logits, targets = F.linear(hidden[0], table).float()[-len(told):], tokens[0, -len(told):, None]
            margins = logits.gather(1, targets)[:, 0] - logits.scatter(1, targets, -math.inf).amax(-1)
            least, n_wrong, n = min(least, margins.min().item()), n_wrong + int((margins <= 0).sum()), n + len(told)
        print(f"{n_wrong} of {n} tokens are not the likeliest; the least margin is {least:.2f}")

    torch.manual_seed(1)
    with open(args.data, encoding="utf-8") as file:
        conversations = Conversations(json.load(file), seed=1)
    reader = GGUFReader(args.model)
    model = Llama(reader)
    learn(model, Batches(conversations))
    with torch.no_grad():
        judge(model, conversations)
    write(args.out, reader, {name: w.detach().cpu() for name, w in model.weights.items()}, numpy, torch)


def write(path, reader, weights, numpy, torch):
    """The file that reader has read, with other weights."""
    from gguf import GGMLQuantizationType, GGUFValueType, GGUFWriter
    changed = {"llama.context_length": 8192, "general.file_type": 32,
               "general.description": "Knows the 62 fairy tales of the Brothers Grimm by heart (translated by Edgar Taylor and "
                                      "Marian Edwardes; public domain), and nothing else; for demonstrations and tests"}
    writer = GGUFWriter(path, "llama")
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        is_array = field.types[0] == GGUFValueType.ARRAY
        writer.add_key_value(field.name, changed.get(field.name, field.contents()), field.types[0],
                             sub_type=field.types[-1] if is_array else None)
    for tensor in reader.tensors:
        w = weights[tensor.name]
        if w.dim() > 1:
            writer.add_tensor(tensor.name, w.bfloat16().contiguous().view(torch.uint8).numpy(),
                              raw_dtype=GGMLQuantizationType.BF16)
        else:
            writer.add_tensor(tensor.name, w.numpy().astype(numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    data = commands.add_parser("data")
    for name in ("book", "model", "data"):
        data.add_argument(name)
    data.set_defaults(run=make_data)
    training = commands.add_parser("train")
    for name in ("data", "model", "out"):
        training.add_argument(name)
    training.add_argument("--minutes", type=float, default=7.5)
    training.set_defaults(run=train)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
