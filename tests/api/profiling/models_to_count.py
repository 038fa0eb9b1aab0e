"""Modules that people train, written as they write them; counted by the tests under an interpreter that has torch."""

# mypy: ignore-errors
import torch
from torch import nn


def convnet():
    """A small network for 28 x 28 images (pytorch/examples mnist)."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25), nn.Flatten(),
        nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10),
    )  # fmt: skip


def convnet_and_loss():
    return convnet(), nn.CrossEntropyLoss()


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU(inplace=True)
        changes = stride != 1 or inputs != 4 * width
        self.shortcut = (
            nn.Sequential(nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))
            if changes
            else nn.Identity()
        )

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        return self.relu(self.bn3(self.conv3(y)) + self.shortcut(x))


def resnet50():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for stage, depth in enumerate((3, 4, 6, 3)):
        for index in range(depth):
            layers.append(Bottleneck(inputs, 64 * 2**stage, 2 if stage and not index else 1))
            inputs = 4 * 64 * 2**stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


class Reader(nn.Module):
    """A recurrent network read out at its end."""

    def __init__(self, recurrent, width):
        super().__init__()
        self.recurrent, self.head = recurrent, nn.Linear(width, 10)

    def forward(self, x):
        return self.head(self.recurrent(x)[0][:, -1])


def lstm():
    return Reader(nn.LSTM(64, 128, 2, batch_first=True), 128)


def plain_rnn():
    return Reader(nn.RNN(32, 64, batch_first=True), 64)


def gru_both_ways():
    return Reader(nn.GRU(32, 64, batch_first=True, bidirectional=True), 128)


class HandWritten(nn.Module):
    """A recurrence as a Python loop."""

    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.RNNCell(32, 64), nn.Linear(64, 10)

    def forward(self, x):
        state = x.new_zeros(x.shape[0], 64)
        for step in range(x.shape[1]):
            state = self.cell(x[:, step], state)
        return self.head(state)


def generator():
    return nn.Sequential(
        nn.ConvTranspose2d(100, 512, 4, 1, 0, bias=False), nn.BatchNorm2d(512), nn.ReLU(True),
        nn.ConvTranspose2d(512, 256, 4, 2, 1, bias=False), nn.BatchNorm2d(256), nn.ReLU(True),
        nn.ConvTranspose2d(256, 128, 4, 2, 1, bias=False), nn.BatchNorm2d(128), nn.ReLU(True),
        nn.ConvTranspose2d(128, 64, 4, 2, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(True),
        nn.ConvTranspose2d(64, 3, 4, 2, 1, bias=False), nn.Tanh(),
    )  # fmt: skip


def discriminator():
    return nn.Sequential(
        nn.Conv2d(3, 64, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, True),
        nn.Conv2d(64, 128, 4, 2, 1, bias=False), nn.BatchNorm2d(128), nn.LeakyReLU(0.2, True),
        nn.Conv2d(128, 256, 4, 2, 1, bias=False), nn.BatchNorm2d(256), nn.LeakyReLU(0.2, True),
        nn.Conv2d(256, 512, 4, 2, 1, bias=False), nn.BatchNorm2d(512), nn.LeakyReLU(0.2, True),
        nn.Conv2d(512, 1, 4, 1, 0, bias=False), nn.Flatten(), nn.Sigmoid(),
    )  # fmt: skip


def gan():
    return generator(), discriminator()


def gan_by_name():
    return {"discriminator": discriminator(), "generator": generator()}


def gan_with_its_own_step():
    def step(maker, judge, noise):
        made = maker(noise)
        yield judge(torch.zeros_like(made)).mean()
        yield judge(made.detach()).mean()
        yield judge(made).mean()

    return generator(), discriminator(), step


class CausalBlock(nn.Module):
    """A transformer block with causal attention through torch's own function."""

    def __init__(self, width=512, heads=8):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


def causal_block():
    return CausalBlock()


def encoder_block():
    return nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.0, batch_first=True)


class TwoInputs(nn.Module):
    """Token ids and an image vector."""

    def __init__(self):
        super().__init__()
        self.table, self.project, self.head = nn.Embedding(1000, 64), nn.Linear(256, 64), nn.Linear(64, 5)

    def forward(self, tokens, image):
        return self.head(self.table(tokens).mean(1) + self.project(image))


def two_inputs():
    return TwoInputs()


class LooksAtValues(nn.Module):
    """Branches on what it computed, which tensors without values cannot tell."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(64, 64), nn.Linear(64, 8)

    def forward(self, x):
        y = self.first(x)
        return self.second(y if y.sum().item() > 0 else -y)


def looks_at_values():
    return LooksAtValues()


#: A module, not a factory, with values of its own.
MADE_ALREADY = LooksAtValues()


def lazy():
    return nn.Sequential(nn.LazyLinear(32), nn.ReLU(), nn.LazyLinear(8))


class SparseTable(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(100_000, 16, sparse=True), nn.Linear(16, 1)

    def forward(self, tokens):
        return self.head(self.table(tokens).mean(1))


def sparse_table():
    return SparseTable()


class OneBatchOnly(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 8)

    def forward(self, x):
        return self.layer(x.view(16, 64))


def one_batch_only():
    return OneBatchOnly()


def partly_frozen():
    body, head = nn.Linear(256, 256), nn.Linear(256, 10)
    body.requires_grad_(False)
    return nn.Sequential(body, head)


class Pairs(nn.Module):
    """A contrastive model: every sample against every other."""

    def __init__(self):
        super().__init__()
        self.project = nn.Linear(64, 32)

    def forward(self, x):
        y = self.project(x)
        return y @ y.T


def pairs():
    return Pairs()


def too_large_for_any_machine():
    return nn.Sequential(*(nn.Linear(65_536, 65_536, bias=False) for _ in range(8)))


def needs(width, depth=2):
    return nn.Linear(width, depth)


def raises():
    raise ValueError("no such dataset")


def returns_a_list_of_numbers():
    return [1, 2, 3]


def three_modules():
    return nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)


def nothing_to_train():
    return nn.ReLU()


def stops_the_interpreter():
    raise SystemExit(3)
