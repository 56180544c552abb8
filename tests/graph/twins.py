"""Networks written twice: with functions, as many are published, and with modules."""

import torch
from torch import nn
from torch.nn import functional as F


class Shortcut(nn.Module):
    """Every other pixel, and channels of zeros: the shortcut without weights of He et al. 2016."""

    def __init__(self, extra):
        super().__init__()
        self.extra = extra

    def forward(self, x):
        return F.pad(
            x[:, :, ::2, ::2], (0, 0, 0, 0, self.extra // 2, self.extra // 2), "constant", 0
        )


class Block(nn.Module):
    """A residual block as in a common ResNet for CIFAR; `modular` says how it is written."""

    def __init__(self, inputs, outputs, stride, modular):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
        self.shortcut = Shortcut(outputs - inputs) if stride > 1 else nn.Sequential()
        self.relu1, self.relu2 = nn.ReLU(), nn.ReLU()
        self.modular = modular

    def forward(self, x):
        if self.modular:
            out = self.bn2(self.conv2(self.relu1(self.bn1(self.conv1(x)))))
            return self.relu2(out + self.shortcut(x))
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        return F.relu(out)


class CifarResNet(nn.Module):
    """A small ResNet that ends as the published one does: `F.avg_pool2d(out, out.size(3))`."""

    def __init__(self, modular=False, classes=10):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8)
        self.relu = nn.ReLU()
        self.layer1 = nn.Sequential(*(Block(8, 8, 1, modular) for _ in range(2)))
        self.layer2 = nn.Sequential(Block(8, 16, 2, modular), Block(16, 16, 1, modular))
        self.linear = nn.Linear(16, classes)
        self.pool, self.flatten = nn.AvgPool2d(16), nn.Flatten()
        self.modular = modular

    def forward(self, x):
        if self.modular:
            x = self.layer2(self.layer1(self.relu(self.bn1(self.conv1(x)))))
            return self.linear(self.flatten(self.pool(x)))
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.layer2(self.layer1(out))
        out = F.avg_pool2d(out, out.size()[3])
        out = out.view(out.size(0), -1)
        return self.linear(out)


class Functions(nn.Module):
    """One layer of every kind that is called as a function, with weights of the network's own."""

    def __init__(self, modular=False):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3, 2), nn.Conv2d(8, 8, 3, padding=1, groups=4)
        self.norm, self.head_norm = nn.BatchNorm2d(8), nn.BatchNorm1d(12)
        self.hidden, self.head = nn.Linear(8, 12), nn.Linear(12, 5, bias=False)
        self.pad, self.edge = nn.ZeroPad2d((0, 1, 0, 1)), nn.ReflectionPad2d(1)
        self.up, self.most = nn.Upsample(scale_factor=2), nn.MaxPool2d(3, 2, ceil_mode=True)
        self.few, self.relu = nn.AdaptiveAvgPool2d((3, 3)), nn.ReLU()
        self.modular = modular

    def forward(self, x):
        if self.modular:
            x = self.relu(self.norm(self.first(self.pad(x))))
            x = self.few(self.most(self.up(self.second(self.edge(x)))))
            return self.head(self.head_norm(self.hidden(x.mean((2, 3)))))
        x = F.pad(x, (0, 1, 0, 1))
        x = F.conv2d(x, self.first.weight, self.first.bias, stride=2)
        norm, second = self.norm, self.second
        x = F.batch_norm(
            x, norm.running_mean, norm.running_var, norm.weight, norm.bias, False, 0.1, norm.eps
        )
        x = F.conv2d(
            F.pad(torch.relu(x), [1] * 4, mode="reflect"), second.weight, second.bias, 1, 1, 1, 4
        )
        x = F.interpolate(x, size=(2 * x.shape[2], 2 * x.shape[-1]))
        x = F.max_pool2d(x, kernel_size=x.shape[2] // x.shape[2] * 3, stride=2, ceil_mode=True)
        x = torch.mean(F.adaptive_avg_pool2d(x, (3, 3)), dim=(2, 3))
        norm = self.head_norm
        x = F.linear(x, self.hidden.weight, bias=self.hidden.bias)
        x = F.batch_norm(x, norm.running_mean, norm.running_var, norm.weight, norm.bias)
        return F.linear(x, self.head.weight)
