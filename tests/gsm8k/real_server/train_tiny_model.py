"""Makes a Llama of 0.5 million weights that knows a few word problems by heart: `train_tiny_model.py PAIRS.json OUT`.

Runs in the model server's own environment (torch, transformers), not in the project's.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

END, PAD = "<end>", "<pad>"
CHAT_TEMPLATE = "{{ messages[-1]['content'] }}"
GOOD_ENOUGH = 0.02
MAX_STEPS = 600


def make_tokenizer(texts: list[str]) -> PreTrainedTokenizerFast:
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=512, special_tokens=[END, PAD], initial_alphabet=alphabet)
    bpe.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe, eos_token=END, pad_token=PAD, chat_template=CHAT_TEMPLATE, model_max_length=2048
    )


def make_model(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=512,
            hidden_size=128,
            intermediate_size=256,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=4,
            max_position_embeddings=2048,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            tie_word_embeddings=True,
        )
    )


def make_batch(tokenizer: PreTrainedTokenizerFast, pairs: list[dict[str, str]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids and labels; only the solution is learnt, not the prompt."""
    rows = []
    for pair in pairs:
        prompt = tokenizer.encode(pair["prompt"])
        solution = [*tokenizer.encode(" " + pair["solution"]), tokenizer.eos_token_id]
        rows.append((prompt + solution, [-100] * len(prompt) + solution))
    width = max(len(ids) for ids, _ in rows)
    ids = torch.tensor([ids + [tokenizer.pad_token_id] * (width - len(ids)) for ids, _ in rows])
    labels = torch.tensor([labels + [-100] * (width - len(labels)) for _, labels in rows])
    return ids, labels


def train(model: LlamaForCausalLM, ids: torch.Tensor, labels: torch.Tensor) -> tuple[int, float]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=MAX_STEPS, pct_start=0.1)
    loss = float("inf")
    for steps in range(1, MAX_STEPS + 1):
        output = model(input_ids=ids, labels=labels)
        output.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        loss = output.loss.item()
        if loss < GOOD_ENOUGH:
            return steps, loss
    return MAX_STEPS, loss


def main(pairs_path: str, out: str) -> None:
    torch.manual_seed(0)
    torch.set_num_threads(2)
    pairs = json.loads(Path(pairs_path).read_text())
    tokenizer = make_tokenizer([pair["prompt"] + " " + pair["solution"] for pair in pairs])
    model = make_model(tokenizer)
    ids, labels = make_batch(tokenizer, pairs)
    steps, loss = train(model, ids, labels)
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    print(f"loss {loss:.5f} after {steps} steps of {ids.shape[0]} x {ids.shape[1]} tokens")


if __name__ == "__main__":
    main(*sys.argv[1:])
