#!/usr/bin/env python3
"""Set the weights of attend's built-in model by hand.

    python3 models/hand/make.py [FOLDER]     (default: the folder of this file)

writes config.json, words.txt and model.safetensors. Nothing is trained and
nothing is random: every one of the 180,224 weights is 0 or a small whole
number that this file puts there for a reason, so this file is the lesson.
Python's standard library is enough, and the same bytes come out everywhere.

What the model does
-------------------
It goes on with a text as a reader without any knowledge would: "the last time
I saw this word, which word came next?" After

    Ada Lovelace met Alan Turing . Ada

it says Lovelace. Two attention heads do it, one after the other:

    layer 0, previous-token head   every position notes down the word before it
    layer 1, induction head        the last word, A, looks for the positions
                                   that noted "the word before me was A", and
                                   copies the word that stands there, B

Neither can do it alone: a head compares one position with one other, and
"the word after the earlier A" needs two comparisons. Researchers found that
pair of heads inside trained language models of all sizes; here it stands bare.

Where the text has not yet shown what comes next, a table of word pairs makes
the sentence go on in passable English.

The residual stream
-------------------
Each position carries one vector of width 256. It is divided into four lanes of
64 numbers, which never mix:

    WORD   which word stands here            one-hot: a single 1, at its id
    PLACE  which position this is            one-hot: a single 1, at its number
    BEFORE which word stands one before      empty until layer 0 writes it
    COPY   which word to say next            empty until layer 1 writes it

One-hot codes are orthogonal: code(a) . code(b) is 1 if a = b and 0 otherwise.
So a dot product, the only comparison that attention knows, answers "the same?"
exactly, and every coordinate can be read by eye. Trained models do the same
with many more features than coordinates, at the price of small overlaps.

64 words, 64 positions, 64 numbers in a head: all equal, so that a code fits a
head, and the scale 1/sqrt(64) is 1/8.
"""
import json
import os
import struct
import sys

# ---- The vocabulary, by kind of word --------------------------------------

KINDS = {
    "start": "<s>",
    "determiner": "the a her",
    "noun": "cat dog fox owl bird dragon book notebook ball cake house river bank moon star mat "
            "money time",
    "name": "Ada Alan Grace Maya Ravi",
    "surname": "Lovelace Turing Hopper",
    "pronoun": "she he it",
    "transitive": "sees likes finds has met lent",
    "intransitive": "sat sleeps sings runs",
    "copula": "is was",
    "adjective": "big small old blue happy",
    "very": "very",
    "preposition": "on in under",
    "and": "and",
    "hello": "hello",
    "world": "world",
    "once": "once",
    "upon": "upon",
    "there": "there",
    "end": ". ! ?",
    "comma": ",",
}

# Which kinds may follow a kind. The surnames follow nothing: that Ada is called
# Lovelace can be learned from the prompt only.
VERB = "transitive intransitive copula"
SENTENCE = "determiner name pronoun hello once there"
MAY_FOLLOW = {
    "start": SENTENCE,
    "determiner": "noun adjective",
    "noun": VERB + " preposition and end comma",
    "name": VERB,
    "surname": VERB,
    "pronoun": VERB,
    "transitive": "determiner name",
    "intransitive": "preposition and end",
    "copula": "adjective very",
    "adjective": "noun",
    "very": "adjective",
    "preposition": "determiner",
    "and": "determiner name pronoun",
    "hello": "world",
    "world": "end",
    "once": "upon",
    "upon": "determiner",
    "there": "copula",
    "end": SENTENCE,
    "comma": "and determiner name pronoun",
}

WORDS = [word for words in KINDS.values() for word in words.split()]
KIND_OF = {word: kind for kind, words in KINDS.items() for word in words.split()}

# ---- Sizes and lanes --------------------------------------------------------

VOCAB = len(WORDS)  # 64; id 0 is <s>, which begins every text
CONTEXT = 64        # positions
HEAD_DIM = 64       # numbers in a query, key or value; scores are q . k / 8
WIDTH = 4 * 64

WORD, PLACE, BEFORE, COPY = 0, 64, 128, 192  # where each lane begins
START = WORDS.index("<s>")

# ---- The numbers that were chosen, all of them ------------------------------

QUERY = 16   # q . k of a match is 16 * 8 = 128, and 128 / 8 = 16 nats: against
KEY = 8      # 63 keys of score 0 the match gets 1 / (1 + 63 e^-16) = 0.99999.
REST = 8     # <s> scores 8 * 8 / 8 = 8 from every query of layer 1: far under a
             # match (e^-8 = 0.0003 of its weight), far over no match.
DOUBLE = 1   # 16 * 1 / 8 = 2 nats more for a word that follows itself, see below.
SAY = 16     # logit of a word that is copied with weight 1.
GRAMMAR = 6  # logit of a word that may follow by the table of pairs.
NEVER = -16  # logit of <s>, which is never said.

# ---- Matrices ---------------------------------------------------------------


def zeros(rows, columns):
    return [[0] * columns for _ in range(rows)]


def embeddings():
    """x = words[token] + places[position]: two lanes filled, two still empty."""
    words, places = zeros(VOCAB, WIDTH), zeros(CONTEXT, WIDTH)
    for word in range(VOCAB):
        words[word][WORD + word] = 1
    for place in range(CONTEXT):
        places[place][PLACE + place] = 1
    return words, places


def previous_token_head():
    """Position i looks at position i - 1 and notes its word in BEFORE.

    A matrix is applied as y = W x, so W[a][b] carries coordinate b to a.
        q(i) = 16 at coordinate i - 1    "I look for place i - 1"
        k(j) =  8 at coordinate j        "I am place j"
        v(j) =  1 at the id of its word  "I carry this word"
    Position 0 has none before it. Nothing matches, but it sees itself only, so
    it notes its own word there, <s>; layer 1 knows that and does not read it.
    """
    q, k, v, o = (zeros(HEAD_DIM, WIDTH), zeros(HEAD_DIM, WIDTH), zeros(HEAD_DIM, WIDTH),
                  zeros(WIDTH, HEAD_DIM))
    for place in range(CONTEXT):
        if place > 0:
            q[place - 1][PLACE + place] = QUERY
        k[place][PLACE + place] = KEY
    for word in range(VOCAB):
        v[word][WORD + word] = 1
        o[BEFORE + word][word] = 1
    return q, k, v, o


def induction_head():
    """Looks for positions whose BEFORE is the word here, and copies their word.

        q(i) = 16 at the id of the word here; 8 at coordinate 0
        k(j) =  8 at the id of the word before; <s> itself: 8 at coordinate 0
        v(j) =  1 at the id of the word there; <s>: nothing

    Coordinate 0 belongs to <s>, which no query ever looks for as a word. It is
    used for resting: a softmax has to put its weight somewhere, and a word that
    is new puts it on <s>, whose value is zero, so that nothing is copied.

    One more number: a key has a 1 at its own id. Where a word once followed
    itself ("very very"), the position of the second is both "before: very" and
    "here: very", and scores 18. So "A A ... A" says A again, though the second
    A was itself followed by something else.
    """
    q, k, v, o = (zeros(HEAD_DIM, WIDTH), zeros(HEAD_DIM, WIDTH), zeros(HEAD_DIM, WIDTH),
                  zeros(WIDTH, HEAD_DIM))
    for word in range(VOCAB):
        q[START][WORD + word] = REST
        if word != START:
            q[word][WORD + word] = QUERY
            k[word][BEFORE + word] = KEY
            k[word][WORD + word] = DOUBLE
            v[word][WORD + word] = 1
            o[COPY + word][word] = 1
    k[START][WORD + START] = KEY
    return q, k, v, o


def unembedding():
    """logit(w) = 16 * COPY[w] + table[word here][w].

    The table needs no attention: it maps WORD straight to the logits. A copied
    word has 16, ten more than any other; against 23 words at 6, the most there
    are, its probability is 0.999. If the word here was followed by B once and
    by C once, each is copied with weight 1/2 and gets 8: both are likely, and
    sampling chooses.
    """
    logits = zeros(VOCAB, WIDTH)
    for after, word in enumerate(WORDS):
        if after != START:
            logits[after][COPY + after] = SAY
        for before in range(VOCAB):
            if KIND_OF[word] in MAY_FOLLOW[KIND_OF[WORDS[before]]].split():
                logits[after][WORD + before] = GRAMMAR
            if after == START:
                logits[after][WORD + before] = NEVER
    return logits


def tensors():
    """All tensors in the order of the file. Weights are [out, in]."""
    words, places = embeddings()
    yield "model.embed_tokens.weight", words
    yield "model.embed_positions.weight", places
    for layer, head in enumerate((previous_token_head(), induction_head())):
        for letter, matrix in zip("qkvo", head):
            yield f"model.layers.{layer}.self_attn.{letter}_proj.weight", matrix
    yield "lm_head.weight", unembedding()


# ---- Files ------------------------------------------------------------------

CONFIG = {
    "model_type": "attend",
    "name": "hand",
    "vocab_size": VOCAB,
    "hidden_size": WIDTH,
    "num_hidden_layers": 2,
    "num_attention_heads": 1,
    "num_key_value_heads": 1,
    "head_dim": HEAD_DIM,
    "max_position_embeddings": CONTEXT,
    "positions": "learned",
    "norm": "none",
    "ffn": "none",
    "tie_word_embeddings": False,
    "bos_token_id": START,
    "torch_dtype": "float16",
}

WORDS_HEADER = "#attend-words 1"


def half_floats(matrix):
    """float16, which holds all whole numbers up to 2048 exactly."""
    return b"".join(struct.pack(f"<{len(row)}e", *row) for row in matrix)


def safetensors(named):
    """8 bytes length, a JSON header, then the tensors without gaps."""
    header, data, offset = {"__metadata__": {"format": "pt"}}, [], 0
    for name, matrix in named:
        data.append(half_floats(matrix))
        end = offset + len(data[-1])
        header[name] = {"dtype": "F16", "shape": [len(matrix), len(matrix[0])],
                        "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % 64)  # so that tensors begin at a multiple of 64
    return struct.pack("<Q", len(text)) + text + b"".join(data)


def main(folder):
    assert VOCAB == CONTEXT == HEAD_DIM == 64, VOCAB
    assert set(KINDS) == set(MAY_FOLLOW)
    files = {
        "config.json": (json.dumps(CONFIG, indent=2) + "\n").encode(),
        "words.txt": "\n".join([WORDS_HEADER] + WORDS + [""]).encode(),
        "model.safetensors": safetensors(tensors()),
    }
    os.makedirs(folder, exist_ok=True)
    for name, content in files.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__)))
